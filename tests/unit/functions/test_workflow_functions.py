"""workflow, task_stopped and reconcile, called as AWS calls them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reconcile import handler as reconcile
from sandpiper.models.run import RunResult
from shared.step_settings import StepSettings
from task_stopped import handler as task_stopped
from tests.unit.functions.support import LambdaContext
from tests.unit.logic.world import World
from workflow import handler as workflow

if TYPE_CHECKING:
    import io


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(workflow, "steps", lambda: made.steps)
    monkeypatch.setattr(task_stopped, "workflow", lambda: made.workflow)
    monkeypatch.setattr(reconcile, "reconciler", lambda: made.reconciler)
    return made


def act(action: str, run_id: str, **more: Any) -> dict[str, Any]:
    return workflow.handler({"action": action, "run_id": run_id, **more}, LambdaContext())  # type: ignore[arg-type]


def metrics(text: str) -> dict[str, list[float]]:
    lines = [json.loads(line) for line in text.splitlines() if "_aws" in line]
    return {name: value for line in lines for name, value in line.items() if isinstance(value, list)}


def test_a_run_goes_through_the_steps_of_the_state_machine(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = world.start()
    assert act("acquire_slot", run_id, token=world.token("t1")) == {}
    assert world.workflow.answers["t1"] == {"cancelled": False}
    assert act("prepare", run_id) == {
        "cancelled": False,
        "attempt": 1,
        "token_timeout_seconds": 2100,
        "capacity": "FARGATE",
    }
    assert act("recover", run_id, error="SandboxLost", cause="gone") == {"again": True}
    assert act("prepare", run_id)["attempt"] == 2
    key = world.hand_in(run_id, RunResult(outcome="completed"))
    assert act("finalize", run_id, result_key=key) == {"status": "completed"}
    assert metrics(capsys.readouterr().out) == {"RunsCompleted": [1.0]}


def test_a_suspended_run_keeps_the_token_it_waits_on(world: World) -> None:
    run_id = world.running()
    key = world.hand_in(run_id, RunResult(outcome="suspended", suspend_reason="paused"))
    assert act("suspend", run_id, token=world.token("t2"), result_key=key) == {}
    assert world.get(run_id).resume_token == "t2"


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ({"cancelled": True}, "cancelled"),
        ({"cancelled": False, "error": "States.Timeout", "cause": ""}, "timed_out"),
        ({"error": "SandboxLost", "cause": "x"}, "failed"),
    ],
)
def test_the_end_is_decided_from_what_the_state_machine_passes(
    world: World, ending: dict[str, Any], status: str
) -> None:
    assert act("finalize", world.running(), **ending) == {"status": status}


def test_a_run_that_had_ended_is_not_counted_twice(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = world.running()
    act("finalize", run_id, cancelled=True)
    capsys.readouterr()
    act("finalize", run_id, cancelled=True)
    assert metrics(capsys.readouterr().out) == {}


def test_an_unknown_action_is_a_failure(world: World) -> None:
    with pytest.raises(ValueError, match="unknown action"):
        act("dance", world.start())


def test_every_line_of_the_log_names_the_run_and_none_a_token(world: World, log: io.StringIO) -> None:
    run_id = world.start()
    act("acquire_slot", run_id, token=world.token("secret-token"))
    out = log.getvalue()
    assert [json.loads(line)["run_id"] for line in out.splitlines()] == [run_id]
    assert "secret-token" not in out


def test_a_stopped_sandbox_is_told_to_whoever_waits_for_it(world: World) -> None:
    world.token("t3")
    environment = [{"name": "TASK_TOKEN", "value": "t3"}]
    detail = {
        "startedBy": "run-1",
        "stoppedReason": "Spot interruption",
        "overrides": {"containerOverrides": [{"environment": environment}]},
    }
    event = {"source": "aws.ecs", "detail": detail}
    assert task_stopped.handler(event, LambdaContext()) == {"told": 1}  # type: ignore[arg-type]
    assert world.workflow.failures == {"t3": ("SandboxLost", "Spot interruption")}


def test_a_failed_execution_ends_its_run_and_is_counted(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = world.running()
    event = {"source": "aws.states", "detail": {"name": run_id, "status": "FAILED", "cause": None}}
    assert reconcile.handler(event, LambdaContext())["runs"] == [run_id]  # type: ignore[arg-type]
    assert world.status(run_id) == "failed"
    assert metrics(capsys.readouterr().out) == {"RunsMended": [1.0]}


def test_the_scheduled_sweep_ends_runs_without_an_execution(world: World) -> None:
    run_id = world.start()
    world.workflow.finish(run_id)
    world.clock.advance(3600)
    event = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}
    assert reconcile.handler(event, LambdaContext())["runs"] == [run_id]  # type: ignore[arg-type]


def test_what_was_left_over_is_counted_apart(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.secrets.put("run-of-nobody", {"github_token": "x"})
    event = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}
    assert reconcile.handler(event, LambdaContext()) == {  # type: ignore[arg-type]
        "runs": [], "executions": [], "slots": [], "calls": [], "checkpoints": [], "secrets": ["run-of-nobody"],
    }  # fmt: skip
    assert metrics(capsys.readouterr().out) == {"LeftoversMended": [1.0]}


def test_the_settings_of_the_steps_are_typed() -> None:
    environment = {
        "RUNS_TABLE": "runs",
        "EVENTS_TABLE": "events",
        "ARTIFACTS_BUCKET": "bucket",
        "CLUSTER_ARN": "cluster",
        "RUN_SECRETS_KEY_ID": "key",
        "CONCURRENCY": "4",
        "MONTHLY_USD": "12.5",
        "USE_SPOT": "true",
    }
    settings = StepSettings.read(environment)
    assert (settings.quota.concurrency, settings.quota.monthly_usd) == (4, 12.5)
    assert (settings.use_spot, settings.state_machine_arn) == (True, "")
