from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from sandpiper_local.ecs_agent.agent import Agent, Settings
from sandpiper_local.ecs_agent.task import CannotStart, container_environment, secret_values, stop_timeout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TASK = "arn:aws:ecs:us-east-1:000000000000:task/cluster/task-1"
DEFINITION = {
    "executionRoleArn": "arn:execution",
    "taskRoleArn": "arn:task",
    "containerDefinitions": [
        {"name": "sandbox", "environment": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    ],
}


class FakeEcs:
    """One task, as ministack keeps it: RUNNING until somebody stops it."""

    def __init__(self, definition: dict[str, Any]) -> None:
        self.definition = definition
        self.arn = TASK
        self.desired = "RUNNING"
        self.reason = ""
        self.stops: list[str] = []

    def get_paginator(self, _name: str) -> FakeEcs:
        return self

    def paginate(self, *, cluster: str, desiredStatus: str) -> list[dict[str, Any]]:  # noqa: N803 - boto's name
        return [{"taskArns": [self.arn] if self.desired == desiredStatus else []}]

    def describe_tasks(self, *, cluster: str, tasks: list[str]) -> dict[str, Any]:
        task = {
            "taskArn": self.arn,
            "clusterArn": "arn:cluster",
            "taskDefinitionArn": "arn:definition",
            "startedBy": "run-1",
            "desiredStatus": self.desired,
            "stoppedReason": self.reason,
            "containers": [{"name": "sandbox"}],
            "overrides": {"containerOverrides": [{"name": "sandbox", "environment": [{"name": "B", "value": "3"}]}]},
        }
        return {"tasks": [task for _ in tasks]}

    def describe_task_definition(self, *, taskDefinition: str) -> dict[str, Any]:  # noqa: N803 - boto's name
        return {"taskDefinition": self.definition}

    def stop_task(self, *, cluster: str, task: str, reason: str) -> None:
        self.desired = "STOPPED"
        self.reason = self.reason or reason
        self.stops.append(reason)


class FakeSts:
    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses

    def assume_role(self, *, RoleArn: str, RoleSessionName: str, DurationSeconds: int) -> dict[str, Any]:  # noqa: N803
        if self.refuses:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "AssumeRole")
        assert DurationSeconds > 3 * 60 * 60
        return {"Credentials": {"AccessKeyId": f"key of {RoleArn}", "SecretAccessKey": "s", "SessionToken": "t"}}


class FakeFunctions:
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def invoke(self, *, FunctionName: str, InvocationType: str, Payload: bytes) -> None:  # noqa: N803 - boto's names
        assert (FunctionName, InvocationType) == ("arn:task-stopped", "Event")
        self.events.append(json.loads(Payload))


class World:
    def __init__(self, root: Path, *, sts: FakeSts, definition: dict[str, Any], preloaded: str) -> None:
        self.root = root
        self.ecs = FakeEcs(definition)
        self.functions = FakeFunctions()
        (root / "logs").mkdir()
        (root / "scratch").mkdir()
        settings = Settings(
            cluster="arn:cluster",
            task_stopped_function="arn:task-stopped",
            endpoint="http://127.0.0.1:1",
            region="us-east-1",
            logs=root / "logs",
            scratch=root / "scratch",
            tools=None,
            module="task_under_test",
            preloaded=(preloaded,),
        )
        self.agent = Agent(settings, ecs=self.ecs, sts=sts, functions=self.functions)

    def poll_until(self, done: Callable[[], object]) -> None:
        deadline = time.monotonic() + 30
        while not done():
            assert time.monotonic() < deadline, "it did not happen"
            self.agent.poll()
            time.sleep(0.02)

    @property
    def log(self) -> str:
        file = self.root / "logs" / "task-1.log"
        return file.read_text() if file.exists() else ""

    @property
    def detail(self) -> dict[str, Any]:
        (event,) = self.functions.events
        detail: dict[str, Any] = event["detail"]
        return detail


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    """A task that runs the script as its module."""
    monkeypatch.chdir(tmp_path)
    made = []

    def make(
        script: str, *, sts: FakeSts | None = None, definition: dict[str, Any] = DEFINITION, preloaded: str = "json"
    ) -> World:
        (tmp_path / "task_under_test.py").write_text(script)
        made.append(World(tmp_path, sts=sts or FakeSts(), definition=definition, preloaded=preloaded))
        return made[-1]

    yield make
    for here in made:
        here.agent.close()


def test_a_task_sees_its_definition_its_overrides_and_its_role_and_nothing_of_the_operator(
    world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_OPERATOR", "leak")
    here = world("import json, os; print(json.dumps(dict(os.environ)))")
    here.poll_until(lambda: here.functions.events)
    seen = json.loads(here.log)
    assert (seen["A"], seen["B"], seen["AWS_ACCESS_KEY_ID"]) == ("1", "3", "key of arn:task")
    assert seen.keys() == {
        "A", "B", "PATH", "HOME", "TMPDIR", "LANG", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION",
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    }  # fmt: skip


def test_a_task_that_ends_is_marked_stopped_and_told_about_with_its_exit_code(world: Callable[..., World]) -> None:
    here = world("raise SystemExit(7)")
    here.poll_until(lambda: here.functions.events)
    assert here.ecs.stops == ["Essential container in task exited"]
    assert here.detail["containers"][0]["exitCode"] == 7
    assert here.detail["lastStatus"] == "STOPPED"
    assert here.detail["stopCode"] == "EssentialContainerExited"
    assert here.detail["startedBy"] == "run-1"
    assert here.detail["taskArn"] == TASK
    assert here.detail["overrides"]["containerOverrides"][0]["environment"] == [{"name": "B", "value": "3"}]


def test_a_killed_task_reports_137(world: Callable[..., World]) -> None:
    here = world("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    here.poll_until(lambda: here.functions.events)
    assert here.detail["containers"][0]["exitCode"] == 137


def test_stop_task_is_a_polite_request_first(world: Callable[..., World]) -> None:
    here = world(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('bye', flush=True), sys.exit(3)))\n"
        "print('up', flush=True)\n"
        "time.sleep(60)"
    )
    here.poll_until(lambda: "up" in here.log)
    here.ecs.stop_task(cluster="", task=TASK, reason="cancelled")
    here.poll_until(lambda: here.functions.events)
    assert "bye" in here.log
    assert (here.detail["stopCode"], here.detail["stoppedReason"]) == ("UserInitiated", "cancelled")
    assert here.detail["containers"][0]["exitCode"] == 3


def test_a_task_that_ignores_the_request_is_killed_after_its_stop_timeout(world: Callable[..., World]) -> None:
    container = DEFINITION["containerDefinitions"][0]
    definition = DEFINITION | {"containerDefinitions": [container | {"stopTimeout": 1}]}  # type: ignore[operator]
    here = world(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
        definition=definition,
    )
    here.poll_until(lambda: "up" in here.log)
    here.ecs.stop_task(cluster="", task=TASK, reason="cancelled")
    here.poll_until(lambda: here.functions.events)
    assert here.detail["containers"][0]["exitCode"] == 137


def test_daemons_of_a_task_end_with_it_and_its_files_go(world: Callable[..., World]) -> None:
    here = world(
        "import os, subprocess\n"
        "open(os.environ['HOME'] + '/left', 'w').close()\n"
        "print(subprocess.Popen(['sleep', '60'], start_new_session=True).pid)"
    )
    here.poll_until(lambda: here.functions.events)
    with pytest.raises(ProcessLookupError):
        os.kill(int(here.log), 0)
    assert list((here.root / "scratch").iterdir()) == []


def test_a_task_whose_role_can_not_be_assumed_is_stopped_before_it_starts(world: Callable[..., World]) -> None:
    here = world("print('started')", sts=FakeSts(refuses=True))
    here.poll_until(lambda: here.functions.events)
    assert here.log == ""
    assert here.detail["stopCode"] == "TaskFailedToStart"
    assert "arn:execution" in here.detail["stoppedReason"]
    assert "exitCode" not in here.detail["containers"][0]


def test_a_task_is_started_once(world: Callable[..., World]) -> None:
    here = world("print('once')")
    here.poll_until(lambda: here.functions.events)
    for _ in range(3):
        here.agent.poll()
    assert here.log == "once\n"
    assert len(here.functions.events) == 1


def test_a_task_shows_its_run_and_its_program_but_no_credentials(world: Callable[..., World]) -> None:
    container = DEFINITION["containerDefinitions"][0]
    named = container | {"environment": [{"name": "RUN_ID", "value": "run-7"}, {"name": "KEY", "value": "hidden"}]}  # type: ignore[operator]
    here = world(
        "import os, pathlib, sys\n"
        "print(os.environ['KEY'], __name__, sys.argv[0])\n"
        "print(*(repr(pathlib.Path('/proc/self', name).read_bytes()) for name in ('cmdline', 'environ')))",
        definition=DEFINITION | {"containerDefinitions": [named]},
    )
    here.poll_until(lambda: here.functions.events)
    inside, outside = here.log.splitlines()
    assert inside.startswith("hidden __main__ ")
    assert "-m\\x00task_under_test\\x00" in outside
    assert "RUN_ID=run-7\\x00" in outside
    assert "hidden" not in outside
    assert "AWS_SECRET_ACCESS_KEY" not in outside


def test_a_task_has_the_directory_for_temporary_files_that_it_was_given(world: Callable[..., World]) -> None:
    here = world("import os, tempfile; print(tempfile.gettempdir() == os.environ['TMPDIR'] == os.getcwd())")
    here.poll_until(lambda: here.functions.events)
    assert here.log == "True\n"


def test_a_nursery_that_is_killed_takes_its_tasks_along_and_is_replaced(world: Callable[..., World]) -> None:
    here = world("import os, time; print(os.getpid(), flush=True); time.sleep(60)")
    here.poll_until(lambda: here.log)
    container = _parent(int(here.log))
    os.kill(_parent(container), signal.SIGKILL)
    here.poll_until(lambda: here.functions.events)
    assert here.detail["containers"][0]["exitCode"] == 137
    here.poll_until(lambda: not Path(f"/proc/{int(here.log)}").exists())
    here.ecs.arn, here.ecs.desired = f"{TASK}-again", "RUNNING"
    here.poll_until((here.root / "logs" / "task-1-again.log").exists)


def test_a_nursery_that_was_killed_between_tasks_costs_no_task(world: Callable[..., World]) -> None:
    here = world("import os; print(os.getppid())")
    here.ecs.desired = "STOPPED"
    here.agent.poll()
    children = Path(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/children").read_text().split()
    (nursery,) = (pid for pid in children if b"ecs_agent.nursery" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(int(nursery), signal.SIGKILL)
    here.ecs.desired = "RUNNING"
    here.poll_until(lambda: here.functions.events)
    assert here.detail["containers"][0]["exitCode"] == 0


def test_a_task_whose_program_can_not_be_loaded_is_stopped_before_it_starts(world: Callable[..., World]) -> None:
    here = world("print('started')", preloaded="no_such_module")
    here.poll_until(lambda: here.functions.events)
    assert here.detail["stopCode"] == "TaskFailedToStart"
    assert "CannotStartContainerError" in here.detail["stoppedReason"]
    assert list((here.root / "scratch").iterdir()) == []


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class FakeSecrets:
    class exceptions:  # noqa: N801 - boto's name
        ClientError = ClientError

    def get_secret_value(self, *, SecretId: str) -> dict[str, str]:  # noqa: N803 - boto's name
        if SecretId != "arn:aws:secretsmanager:eu:1:secret:name":
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetSecretValue")
        return {"SecretString": '{"key": "value"}'}


def definition_with_secret(reference: str) -> dict[str, Any]:
    return {"containerDefinitions": [{"name": "sandbox", "secrets": [{"name": "KEY", "valueFrom": reference}]}]}


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("arn:aws:secretsmanager:eu:1:secret:name", '{"key": "value"}'),
        ("arn:aws:secretsmanager:eu:1:secret:name:key::", "value"),
    ],
)
def test_a_secret_is_given_whole_or_by_key(reference: str, value: str) -> None:
    assert secret_values(definition_with_secret(reference), FakeSecrets()) == {"KEY": value}


@pytest.mark.parametrize("end", [":missing::", "x"])
def test_a_secret_that_can_not_be_had_keeps_the_task_from_starting(end: str) -> None:
    reference = f"arn:aws:secretsmanager:eu:1:secret:name{end}"
    with pytest.raises(CannotStart, match="ResourceInitializationError"):
        secret_values(definition_with_secret(reference), FakeSecrets())


def test_overrides_of_another_container_are_not_ours() -> None:
    overrides = {"containerOverrides": [{"name": "sidecar", "environment": [{"name": "A", "value": "9"}]}]}
    assert container_environment(DEFINITION, overrides) == {"A": "1", "B": "2"}


def test_without_a_stop_timeout_it_is_thirty_seconds() -> None:
    assert stop_timeout(DEFINITION) == 30
