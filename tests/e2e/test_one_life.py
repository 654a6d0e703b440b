"""Everything that can happen to one run in one life, and every request to it delivered twice at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tests.e2e.faults import Script, assert_same, event_of, kill_sandbox
from tests.e2e.support import (
    Person,
    finishes,
    new_task,
    of_type,
    plans,
    requests_for,
    shell,
    types_of,
    wait_for,
    writes,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Stack

FILES = {"a.txt": "a\n", ".gitignore": "installed\n", ".sandpiper.yml": "checks: ['grep -q two steps']\n"}
WIPE = "rm -rf ./*"
WORDS = "Mind the gap"
REPLIES = (
    plans(),
    shell("echo one >> steps; echo kept > installed; sleep 1.5"),
    shell("cat installed >> steps"),
    shell(f"cp steps /tmp; {WIPE}; cp /tmp/steps .; echo two >> steps"),
    writes("b.txt", "b\n"),
    finishes("After all."),
)


def twice(person: Person, run_id: str, what: str, body: dict[str, Any] | None = None, **headers: str) -> list[int]:
    """The same request two times at once, as by a client that has lost its patience; the statuses of the answers."""

    def post(_: int) -> int:
        return person.http.post(f"/runs/{run_id}/{what}", json=body, headers=headers).status_code

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(post, range(2)))


def approval_of(person: Person, run_id: str) -> str:
    return f"approvals/{wait_for(lambda: person.run(run_id)['approval'])['id']}"


def speak_and_pause(person: Person, run_id: str) -> None:
    event_of(person, run_id, "tool_started", nth=2)
    assert twice(person, run_id, "messages", {"text": WORDS}, **{"Idempotency-Key": "once"}) == [200, 200]
    assert twice(person, run_id, "pause", {}) == [200, 200]


def resume(person: Person, run_id: str) -> None:
    assert person.suspended(run_id)["suspend_reason"] == "paused"
    assert twice(person, run_id, "resume") == [200, 200]


def kill_and_approve(person: Person, run_id: str) -> None:
    """It is killed while it waits for the answer, so the next sandbox asks again."""
    first = event_of(person, run_id, "approval_requested")
    kill_sandbox(run_id, attempt=first.attempt)
    event_of(person, run_id, "approval_requested", nth=2)
    assert twice(person, run_id, approval_of(person, run_id), {"decision": "approve"}) == [200, 200]


def test_a_run_that_is_paused_killed_approved_spoken_to_and_resumed_in_one_life_ends_like_one_that_was_left_alone(
    stack: Stack, tmp_path: Path
) -> None:
    script = Script(stack, tmp_path, FILES, REPLIES)
    with ThreadPoolExecutor() as pool:
        left_alone = pool.submit(script.run, approvals=False)
        lively, calm = script.run(speak_and_pause, resume, kill_and_approve), left_alone.result()
    assert calm.outcome == ("completed", "After all.", "passed")
    assert_same(lively, calm, kills=1)
    happened = types_of(lively.events)
    told = ("run_message_received", "run_suspended", "run_resumed", "run_recovered", "approval_resolved")
    assert [happened.count(type_) for type_ in told] == [1, 1, 1, 1, 1]
    assert (lively.run["attempt"], lively.run["usage"]["turns"]) == (3, calm.run["usage"]["turns"])
    last = requests_for(stack, lively.run["task"])[-1]
    assert str(last["messages"]).count(WORDS) == 1


def test_a_rejection_a_raised_budget_and_a_cancel_that_come_twice_have_their_effect_once(stack: Stack) -> None:
    task = new_task(stack, plans(), shell(WIPE), shell("true"), shell("sleep 600"), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task, "max_turns": 3})
        assert twice(person, run_id, approval_of(person, run_id), {"decision": "reject"}) == [200, 200]
        assert person.suspended(run_id)["suspend_reason"] == "budget_exhausted"
        assert twice(person, run_id, "budget", {"max_turns": 9}) == [200, 200]
        event_of(person, run_id, "tool_started", attempt=2)
        assert set(twice(person, run_id, "cancel")) <= {200, 202}
        run, events = person.end_of(run_id), person.events(run_id)
    assert (run["status"], run["attempt"], run["budget"]["max_turns"]) == ("cancelled", 2, 9)
    told = ("approval_resolved", "run_suspended", "agent_budget_extended", "run_resumed", "run_cancelled")
    assert [types_of(events).count(type_) for type_ in told] == [1, 1, 1, 1, 1]
    assert [data["decision"] for data in of_type(events, "approval_resolved")] == ["reject"]
