"""A stack for the bench: the real one, with a scripted model that the bench can look into."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from botocore.session import get_session

from sandpiper.adapters import aws
from sandpiper.adapters.blobs import S3Blobs
from sandpiper.adapters.clock import SystemClock
from sandpiper.adapters.runs import DynamoRuns
from sandpiper.logic.ids import new_run_id
from sandpiper.models.events import NewEvent
from sandpiper.models.run import Run
from sandpiper.models.spec import RunSpec
from sandpiper_cli.client import Api
from sandpiper_cli.session import mint
from sandpiper_local.paths import StateDir
from sandpiper_local.scripted_model.runner import ScriptedModel
from sandpiper_local.stack import UpOptions, background

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Stack:
    info: dict[str, Any]
    model: ScriptedModel
    state_dir: Path

    @property
    def api_url(self) -> str:
        return str(self.info["api_url"])

    @property
    def outputs(self) -> dict[str, str]:
        return dict(self.info["outputs"])

    def aws(self, service: str) -> Any:
        """As the root of the account, but speaking like the sandbox's own."""
        return get_session().create_client(
            service,
            endpoint_url=self.info["aws_endpoint"],
            region_name=self.info["region"],
            aws_access_key_id=self.info["credentials"]["access_key_id"],
            aws_secret_access_key=self.info["credentials"]["secret_access_key"],
            config=aws.config(service),
        )

    def token(self, user: str) -> str:
        return mint(StateDir(self.state_dir), user=user)

    def api(self, user: str) -> Api:
        return Api(self.api_url, self.token(user))

    def runs(self) -> DynamoRuns:
        """As the sandbox writes to them."""
        return DynamoRuns(
            self.aws("dynamodb"),
            runs_table=self.outputs["RunsTable"],
            events_table=self.outputs["EventsTable"],
            blobs=S3Blobs(self.aws("s3"), bucket=self.outputs["ArtifactsBucket"]),
            clock=SystemClock(),
        )


def running_run(runs: DynamoRuns, owner: str) -> str:
    """A run that is in the tables only, so that its events are the bench's own."""
    now = datetime.now(UTC)
    run_id = new_run_id(now)
    spec = RunSpec(task="bench")
    runs.create(
        Run(run_id=run_id, owner=owner, spec=spec, created_at=now, updated_at=now), [NewEvent(type="run_queued")]
    )
    return run_id


def new_user() -> str:
    return f"bench-{uuid.uuid4().hex[:12]}"


def wait_until(condition: Callable[[], bool], *, seconds: float = 60, every: float = 0.005) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s")
        time.sleep(every)


@contextlib.contextmanager
def running_stack(*, model_url: str | None = None, github: Literal["real", "fake"] = "real") -> Iterator[Stack]:
    """`model_url` is of a model that is asked instead of the scripted one."""
    with tempfile.TemporaryDirectory(prefix="sandpiper-bench-") as directory, ScriptedModel() as model:
        environment = os.environ | {
            "ANTHROPIC_BASE_URL": model_url or model.url,
            "ANTHROPIC_API_KEY": "sk-of-the-bench",
        }
        options = UpOptions(port=0, state_dir=Path(directory), environment=environment, github=github)
        with background(options) as info:
            yield Stack(info, model, options.state_dir)
