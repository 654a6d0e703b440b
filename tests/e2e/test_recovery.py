"""A run survives its sandbox, and ends in words when it can't: killed, aborted, out of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandpiper.adapters.blobs import S3Blobs
from sandpiper.adapters.clock import SystemClock
from sandpiper.adapters.runs import DynamoRuns
from sandpiper.errors import Fenced
from sandpiper.models.events import NewEvent
from tests.e2e.faults import kill_sandbox
from tests.e2e.support import (
    Case,
    Person,
    finishes,
    git,
    make_repository,
    new_task,
    of_type,
    plans,
    processes_with,
    sandbox_processes,
    shell,
    types_of,
    wait_for,
    writes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Stack


@pytest.fixture(scope="module", autouse=True)
def endless(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    """Started with the module, because its thirty seconds pass while the other tests are at work."""
    repository = make_repository(tmp_path_factory.mktemp("endless") / "project", {"a.txt": "a\n"})
    task = new_task(stack, plans(), writes("half.txt", "half\n"), shell("sleep 600"), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task, "repo": str(repository), "timeoutSeconds": 30})
        yield Case(person, run_id, repository)


def wait_for_command(person: Person, run_id: str, *, attempt: int) -> None:
    def is_started() -> bool | None:
        started = [
            event for event in person.events(run_id) if (event["type"], event["attempt"]) == ("tool_started", attempt)
        ]
        return any(event["data"]["tool"] == "run_command" for event in started) or None

    wait_for(is_started)


def test_a_run_whose_sandbox_is_killed_goes_on_in_a_new_one(stack: Stack, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "project", {"a.txt": "a\n"})
    task = new_task(stack, plans("true"), shell("sleep 2"), writes("b.txt", "b\n"), finishes("After all."))
    with Person(stack) as person:
        run_id = person.start({"task": task, "repo": str(repository)})
        wait_for_command(person, run_id, attempt=1)
        kill_sandbox(run_id, attempt=1)
        wait_for(lambda: _started(person, run_id, attempt=2))
        with pytest.raises(Fenced):
            _runs(stack).append(run_id, [NewEvent(type="warning", data={"message": "from the dead"})], attempt=1)
        run = person.end_of(run_id)
        events = person.events(run_id)
    assert (run["status"], run["attempt"], run["result"]["summary"]) == ("completed", 2, "After all.")
    assert [data["attempt"] for data in of_type(events, "run_dispatched")] == [1, 2]
    assert of_type(events, "run_recovered")[0]["attempt"] == 1
    assert types_of(events).count("run_completed") == 1
    attempts = [event["attempt"] for event in events]
    assert attempts == sorted(attempts)
    assert git("show", f"{run['result']['commit']['branch']}:b.txt", at=repository) == "b"


def test_a_run_that_loses_three_sandboxes_fails_and_leaves_nothing(stack: Stack) -> None:
    task = new_task(stack, plans(), shell("sleep 602.5"), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task})
        for attempt in (1, 2, 3):
            wait_for_command(person, run_id, attempt=attempt)
            kill_sandbox(run_id, attempt=attempt)
        run = person.end_of(run_id)
        events = person.events(run_id)
    assert (run["status"], run["attempt"]) == ("failed", 3)
    assert (run["error"]["type"], run["error"]["retryable"]) == ("sandbox_lost", True)
    assert types_of(events).count("run_recovered") == 2
    wait_for(lambda: None if processes_with("sleep 602.5") or sandbox_processes(run_id) else True)


def test_an_execution_that_is_aborted_from_outside_ends_the_run_and_its_sandbox(stack: Stack) -> None:
    task = new_task(stack, plans(), shell("sleep 603.5"), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task})
        wait_for_command(person, run_id, attempt=1)
        machine = stack.outputs["StateMachineArn"].replace(":stateMachine:", ":execution:")
        stack.aws("stepfunctions").stop_execution(executionArn=f"{machine}:{run_id}", cause="by hand")
        run = person.end_of(run_id)
        events = person.events(run_id)
    assert (run["status"], run["error"]["type"]) == ("failed", "sandbox_lost")
    assert types_of(events)[-1] == "run_failed"
    wait_for(lambda: None if processes_with("sleep 603.5") or sandbox_processes(run_id) else True)


def test_a_run_out_of_time_ends_its_command_and_keeps_its_work(endless: Case) -> None:
    assert endless.outcome == ("timed_out", "timeout")
    assert types_of(endless.events)[-1] == "run_timed_out"
    assert "+++ b/half.txt" in endless.person.download(endless.run_id, "diff").text
    assert endless.branches == ["main"]
    wait_for(lambda: None if sandbox_processes(endless.run_id) else True)  # it may still be on its way out


def _started(person: Person, run_id: str, *, attempt: int) -> bool | None:
    return any(data["attempt"] == attempt for data in of_type(person.events(run_id), "run_started")) or None


def _runs(stack: Stack) -> DynamoRuns:
    return DynamoRuns(
        stack.aws("dynamodb"),
        runs_table=stack.outputs["RunsTable"],
        events_table=stack.outputs["EventsTable"],
        blobs=S3Blobs(stack.aws("s3"), bucket=stack.outputs["ArtifactsBucket"]),
        clock=SystemClock(),
    )
