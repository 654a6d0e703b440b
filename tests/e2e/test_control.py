"""Cancelling: while a command runs, when all is over, and again."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from tests.e2e.support import (
    Person,
    finishes,
    make_repository,
    new_task,
    of_type,
    open_calls,
    plans,
    processes_with,
    refusal,
    sandbox_processes,
    shell,
    types_of,
    wait_for,
    writes,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Stack


def test_a_cancelled_run_ends_its_command_and_leaves_no_process(stack: Stack, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    repository = make_repository(tmp_path / "project", {"a.txt": "a\n"})
    hide = f"(setsid sh -c 'sleep 600; : {mark}' &) ; sleep 600; : {mark}"
    task = new_task(stack, plans(), writes("half.txt", "half\n"), shell(hide), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task, "repo": str(repository)})
        wait_for(lambda: len(processes_with(f": {mark}")) >= 2 or None)
        answer = person.cancel(run_id)
        assert (answer.status_code, answer.json()["run"]["cancel_requested"]) == (202, True)
        assert person.cancel(run_id).status_code in {200, 202}
        run = person.end_of(run_id)
        wait_for(lambda: None if processes_with(mark) or sandbox_processes(run_id) else True)
        assert (run["status"], run["error"]["type"]) == ("cancelled", "cancelled")
        events = person.events(run_id)
        assert types_of(events)[-1] == "run_cancelled"
        (broken_off,) = of_type(events, "tool_failed")
        assert (broken_off["error"], broken_off["exit_code"]) == ("Broken off, because the run was cancelled.", None)
        assert open_calls(events) == set()
        assert "half.txt" in person.download(run_id, "diff").text
        assert "run_command" in person.download(run_id, "logs").text
        again = person.cancel(run_id)
        assert (again.status_code, again.json()["run"]["status"]) == (200, "cancelled")


def test_a_run_that_has_ended_can_not_be_cancelled(stack: Stack) -> None:
    with Person(stack) as person:
        run = person.finish({"task": new_task(stack, plans(), finishes())})
        refusal(person.cancel(run["run_id"]), 409, "conflict")
        assert person.run(run["run_id"]) == run


def test_a_run_cancelled_at_once_never_gets_a_model(stack: Stack) -> None:
    task = new_task(stack, plans(), shell("sleep 60"), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task})
        assert person.cancel(run_id).status_code == 202
        assert person.end_of(run_id)["status"] == "cancelled"
        assert "agent_finished" not in types_of(person.events(run_id))
