"""`python -m sandbox_task`: the process in the container. Everything real is put together here and nowhere else."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_task.agent.tools.toolbox import describe_all
from sandbox_task.isolation.launch import open_rooms
from sandbox_task.model.anthropic import import_early
from sandbox_task.model.factory import models_for
from sandbox_task.privileges import become_supervisor, guard_own_memory
from sandbox_task.settings import Settings, read_settings
from sandbox_task.stopping import Stop
from sandbox_task.supervisor import Services, Supervisor
from sandpiper import limits
from sandpiper.adapters import aws
from sandpiper.adapters.blobs import S3Blobs
from sandpiper.adapters.clock import SystemClock
from sandpiper.adapters.github.tokens import LambdaRepositoryTokens
from sandpiper.adapters.head_watch import DynamoHeadWatch
from sandpiper.adapters.run_secrets import KmsRunSecrets
from sandpiper.adapters.runs import DynamoRuns
from sandpiper.adapters.workflow import StepFunctionsWorkflow
from sandpiper.models.base import build_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from sandpiper.github_ports import RepositoryTokens
    from sandpiper.ports import Clock

# when this is imported: whoever keeps a process ready has it done before the task comes
build_all()
describe_all()
aws.read_early("dynamodb", "s3", "kms", "stepfunctions", "lambda")


def main() -> int:
    become_supervisor(os.environ)
    guard_own_memory()
    settings = read_settings(os.environ)
    import_early()
    stop = Stop()
    _stop_on_sigterm(stop)
    with _work_dir(settings) as root:
        return _supervisor(settings, root, stop).run()


def _supervisor(settings: Settings, root: Path, stop: Stop) -> Supervisor:
    return Supervisor(
        settings,
        _services(settings),
        open_rooms(root, settings.worker_uid),
        stop,
        make_models=lambda name: models_for(name, settings),
        known_secrets=aws.own_credentials(),  # so that they can be hidden wherever they turn up
    )


@contextmanager
def _work_dir(settings: Settings) -> Iterator[Path]:
    """The one that was named, or a new one that goes with the run."""
    if settings.sandbox_work_dir:
        yield settings.sandbox_work_dir
        return
    with tempfile.TemporaryDirectory(prefix="sandpiper-", ignore_cleanup_errors=True) as path:
        yield Path(path)


def _services(settings: Settings) -> Services:
    clock, attempts = SystemClock(), limits.SANDBOX_AWS_ATTEMPTS
    dynamodb = aws.client("dynamodb", attempts=attempts)
    blobs = S3Blobs(aws.client("s3", attempts=attempts), bucket=settings.artifacts_bucket)
    runs = DynamoRuns(
        dynamodb, runs_table=settings.runs_table, events_table=settings.events_table, blobs=blobs, clock=clock
    )
    secrets = KmsRunSecrets(
        dynamodb,
        aws.client("kms", attempts=attempts),
        runs_table=settings.runs_table,
        key_id=settings.run_secrets_key_id,
        clock=clock,
    )
    workflow = StepFunctionsWorkflow(aws.client("stepfunctions", attempts=attempts), state_machine_arn="")
    watch = DynamoHeadWatch(dynamodb, runs_table=settings.runs_table, clock=clock)
    return Services(runs, blobs, secrets, workflow, clock, _tokens(settings, clock), watch)


def _tokens(settings: Settings, clock: Clock) -> RepositoryTokens | None:
    if settings.github_function is None:
        return None
    functions = aws.client("lambda", read_seconds=limits.GITHUB_MINTING_SECONDS)
    return LambdaRepositoryTokens(functions, function=settings.github_function, clock=clock)


def _stop_on_sigterm(stop: Stop) -> None:
    def on_sigterm(_signal: int, _frame: FrameType | None) -> None:
        # a thread of its own: the handler may interrupt code that holds a lock which stopping needs
        threading.Thread(target=stop.request, args=("terminated",), daemon=True).start()

    signal.signal(signal.SIGTERM, on_sigterm)


if __name__ == "__main__":
    sys.exit(main())
