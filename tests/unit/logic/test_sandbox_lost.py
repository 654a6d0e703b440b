from __future__ import annotations

from typing import Any

from sandpiper.logic.sandbox_lost import task_stopped
from sandpiper.testing.fakes import FakeWorkflow


def detail(**more: Any) -> dict[str, Any]:
    environment = [{"name": "RUN_ID", "value": "run-1"}, {"name": "TASK_TOKEN", "value": "token"}]
    return {
        "lastStatus": "STOPPED",
        "overrides": {"containerOverrides": [{"name": "sandbox", "environment": environment}]},
        **more,
    }


def waiting_workflow() -> FakeWorkflow:
    workflow = FakeWorkflow()
    workflow.wait_on("token")
    return workflow


def test_whoever_waits_for_the_sandbox_is_told_that_it_is_lost_and_why() -> None:
    workflow = waiting_workflow()
    containers = [{"name": "sandbox", "exitCode": 137, "reason": "OutOfMemory"}]
    assert task_stopped(detail(stoppedReason="Essential container exited", containers=containers), workflow) == 1
    reason = "Essential container exited; sandbox exited with 137; OutOfMemory"
    assert workflow.failures == {"token": ("SandboxLost", reason)}


def test_a_sandbox_that_has_answered_before_it_stopped_is_no_news() -> None:
    workflow = FakeWorkflow()
    assert task_stopped(detail(stoppedReason="done"), workflow) == 0
    assert workflow.failures == {}


def test_a_task_without_a_token_is_not_ours() -> None:
    assert task_stopped({"overrides": {"containerOverrides": [{"name": "other"}]}}, waiting_workflow()) == 0
    assert task_stopped({}, waiting_workflow()) == 0


def test_a_stop_without_a_reason_is_still_told_in_words() -> None:
    workflow = waiting_workflow()
    task_stopped(detail(), workflow)
    assert workflow.failures["token"] == ("SandboxLost", "the task stopped without a reason")
