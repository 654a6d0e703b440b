"""Runs that ask before they do what can't be undone, and runs that are paused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper_local.scripted_model.conversation import last_tool_results
from tests.e2e.support import (
    Person,
    finishes,
    new_task,
    of_type,
    open_calls,
    plans,
    refusal,
    requests_for,
    sandbox_processes,
    shell,
    types_of,
    wait_for,
)

if TYPE_CHECKING:
    import httpx

    from tests.e2e.conftest import Stack

WIPE = "rm -rf ./* && echo wiped"


def asked(person: Person, run_id: str) -> dict[str, Any]:
    """What the run asks for, when it does."""
    return wait_for(lambda: person.run(run_id)["approval"])


def answer(person: Person, run_id: str, approval: str, **body: str) -> httpx.Response:
    return person.http.post(f"/runs/{run_id}/approvals/{approval}", json=body)


def told(person: Person, run_id: str) -> list[str]:
    wanted = ("approval_requested", "approval_resolved", "run_suspended", "run_resumed", "run_completed")
    return [type_ for type_ in types_of(person.events(run_id)) if type_ in wanted]


def test_an_approval_in_time_lets_the_run_go_on_in_its_sandbox(stack: Stack) -> None:
    task = new_task(stack, plans(), shell(WIPE), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task})
        request = asked(person, run_id)
        assert (request["shown"]["command"], request["risk"]) == (WIPE, "high")
        refusal(answer(person, run_id, "ap-unknown", decision="approve"), 404, "not_found")
        given = [answer(person, run_id, request["id"], decision="approve") for _ in range(2)]
        assert [reply.status_code for reply in given] == [200, 200]
        refusal(answer(person, run_id, request["id"], decision="reject"), 409, "conflict")
        run = person.end_of(run_id)
        assert (run["status"], run["attempt"], run["approval"]) == ("completed", 1, None)
        assert told(person, run_id) == ["approval_requested", "approval_resolved", "run_completed"]
        refusal(answer(person, run_id, "ap-unknown", decision="approve"), 409, "conflict")
    (result,) = last_tool_results(requests_for(stack, task)[-1]["messages"])
    assert (result.is_error, "wiped" in result.text) == (False, True)


def test_a_rejection_reaches_the_model_with_its_note_and_nothing_is_run(stack: Stack) -> None:
    task = new_task(stack, plans(), shell(WIPE), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task})
        request = asked(person, run_id)
        given = answer(person, run_id, request["id"], decision="reject", note="Only the build directory")
        assert given.status_code == 200
        assert person.end_of(run_id)["status"] == "completed"
        (resolved,) = of_type(person.events(run_id), "approval_resolved")
    assert (resolved["decision"], resolved["by"], resolved["note"]) == (
        "reject",
        person.name,
        "Only the build directory",
    )
    (result,) = last_tool_results(requests_for(stack, task)[-1]["messages"])
    assert (result.is_error, "Only the build directory" in result.text, "wiped" in result.text) == (True, True, False)


def test_a_run_that_nobody_answers_waits_for_free_and_an_approval_for_the_run_holds_afterwards(stack: Stack) -> None:
    task = new_task(stack, plans(), shell(WIPE), shell("cd sub; rm -rf ../*; echo again"), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task})
        run = person.suspended(run_id)
        assert (run["suspend_reason"], run["approval"]["shown"]["command"]) == ("awaiting_approval", WIPE)
        wait_for(lambda: None if sandbox_processes(run_id) else True)
        refusal(person.http.post(f"/runs/{run_id}/resume"), 409, "conflict")
        given = answer(person, run_id, run["approval"]["id"], decision="approve", scope="run")
        assert given.status_code == 200
        run = person.end_of(run_id)
        assert (run["status"], run["attempt"]) == ("completed", 2)
        expected = ["approval_requested", "run_suspended", "approval_resolved", "run_resumed", "run_completed"]
        assert told(person, run_id) == expected
    (result,) = last_tool_results(requests_for(stack, task)[-2]["messages"])
    assert (result.is_error, "wiped" in result.text) == (False, True)


def test_who_trusts_a_run_is_not_asked(stack: Stack) -> None:
    with Person(stack) as person:
        task = new_task(stack, plans(), shell(WIPE), finishes())
        run_id = person.start({"task": task, "approvals": False})
        assert person.end_of(run_id)["status"] == "completed"
        assert told(person, run_id) == ["run_completed"]


def test_a_paused_run_gives_its_sandbox_back_and_goes_on_where_it_was(stack: Stack) -> None:
    task = new_task(stack, plans(), shell("sleep 3; echo first > made"), shell("cat made"), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task})
        wait_for(lambda: "sleep 3" in str(of_type(person.events(run_id), "tool_started")) or None)
        replies = [person.http.post(f"/runs/{run_id}/pause", json={}) for _ in range(2)]
        assert [reply.status_code for reply in replies] == [200, 200]
        run = person.suspended(run_id)
        assert run["suspend_reason"] == "paused"
        wait_for(lambda: None if sandbox_processes(run_id) else True)
        assert person.http.post(f"/runs/{run_id}/resume").status_code == 200
        run = person.end_of(run_id)
        assert (run["status"], run["attempt"], run["usage"]["turns"]) == ("completed", 2, 4)
    (result,) = last_tool_results(requests_for(stack, task)[-1]["messages"])
    assert result.text.startswith("first\n")


def test_a_pause_now_breaks_off_the_command_in_hand(stack: Stack) -> None:
    task = new_task(stack, plans(), shell("echo begun > made; sleep 600"), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task})
        wait_for(lambda: "sleep 600" in str(of_type(person.events(run_id), "tool_started")) or None)
        assert person.http.post(f"/runs/{run_id}/pause", json={"now": True}).status_code == 200
        assert person.suspended(run_id)["suspend_reason"] == "paused"
        (broken_off,) = of_type(person.events(run_id), "tool_failed")
        assert (broken_off["error"], broken_off["ended_by"]) == ("Broken off, because the run was paused.", "interrupt")
        assert person.http.post(f"/runs/{run_id}/resume").status_code == 200
        assert person.end_of(run_id)["status"] == "completed"
        assert open_calls(person.events(run_id)) == set()
    (result,) = last_tool_results(requests_for(stack, task)[-1]["messages"])
    assert (result.is_error, "paused" in result.text) == (True, True)
