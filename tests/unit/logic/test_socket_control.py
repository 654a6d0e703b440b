"""What people ask of a run over a socket: the same rules, errors and repetitions as over HTTPS."""

from __future__ import annotations

from typing import Any

import pytest

from sandpiper.models.run import ApprovalRequest, RunResult
from tests.unit.logic.test_sockets import send
from tests.unit.logic.world import BOB, World

NO_RUN = "run-" + "0" * 26
ASKED = {
    "id": "a-1",
    "tool": "run_command",
    "shown": {"command": "git push"},
    "reason": "r",
    "risk": "high",
    "kind": "k",
}


def ask(world: World, action: str, run_id: str, **more: Any) -> dict[str, Any]:
    if "c1" not in world.sockets.frames:
        world.connect("c1")
    return send(world, {"action": action, "run_id": run_id, **more})[-1]


def test_an_answer_says_to_what_it_is_one_and_how_the_run_is_now(world: World) -> None:
    run_id = world.running()
    assert ask(world, "cancel", run_id, key="k-1") == {
        "type": "ack",
        "action": "cancel",
        "run_id": run_id,
        "key": "k-1",
        "run": {
            "run_id": run_id,
            "status": "running",
            "suspend_reason": None,
            "cancel_requested": True,
            "attempt": 1,
            "last_seq": world.get(run_id).last_seq,
        },
    }


def test_a_message_with_a_key_is_said_once_however_often_it_comes(world: World) -> None:
    run_id = world.running()
    answers = [ask(world, "message", run_id, text="Mind the gap", key="k") for _ in range(3)]
    assert [(answer["type"], answer["n"]) for answer in answers] == [("ack", 1)] * 3
    assert [control.data for control in world.runs.controls(run_id, after=0)] == [{"text": "Mind the gap"}]
    other = ask(world, "message", run_id, text="Mind the step", key="k")
    assert (other["type"], other["error"]["type"], other["key"]) == ("error", "conflict", "k")


def test_a_run_is_paused_and_goes_on(world: World) -> None:
    run_id = world.running()
    for _ in range(2):
        assert ask(world, "pause", run_id, now=True)["type"] == "ack"
    assert [(c.action, c.data) for c in world.runs.controls(run_id, after=0)] == [("pause", {"now": True})]
    world.suspend(run_id, RunResult(outcome="suspended", suspend_reason="paused", inbox_seen=1))
    assert ask(world, "resume", run_id)["run"]["status"] == "suspended"
    assert [c.action for c in world.runs.controls(run_id, after=0)] == ["pause", "resume"]


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_an_approval_is_answered_once(world: World, decision: str) -> None:
    run_id = world.running()
    asked = ApprovalRequest(**ASKED, requested_at=world.clock.now())
    world.runs.change(run_id, allowed=("running",), changes={"approval": asked})
    more = {"approval_id": "a-1", "note": "fine", "scope": "run"}
    assert [ask(world, decision, run_id, **more)["type"] for _ in range(2)] == ["ack"] * 2
    (answer,) = world.runs.controls(run_id, after=0)
    assert (answer.action, answer.data["note"], answer.data["scope"]) == (decision, "fine", "run")
    other = {"approve": "reject", "reject": "approve"}[decision]
    assert ask(world, other, run_id, approval_id="a-1")["error"]["type"] == "conflict"


def test_limits_are_raised(world: World) -> None:
    run_id = world.running()
    assert ask(world, "budget", run_id, max_turns=60, timeoutSeconds=1800)["type"] == "ack"
    budget = world.get(run_id).budget
    assert (budget.max_turns, budget.timeout_seconds) == (60, 1800)


@pytest.mark.parametrize("action", ["cancel", "pause", "resume", "message", "approve", "reject", "budget"])
def test_another_owners_run_does_not_exist(world: World, action: str) -> None:
    run_id = world.running(BOB)
    more = {"message": {"text": "hi"}, "approve": {"approval_id": "a"}, "reject": {"approval_id": "a"}}.get(action, {})
    told = ask(world, action, run_id, **more)
    assert (told["type"], told["error"]["type"]) == ("error", "not_found")
    assert world.runs.controls(run_id, after=0) == []


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"action": "cancel"}, "run_id"),
        ({"action": "cancel", "run_id": NO_RUN, "now": True}, "now"),
        ({"action": "pause", "run_id": NO_RUN, "now": "yes"}, "now"),
        ({"action": "pause", "run_id": NO_RUN, "later": True}, "later"),
        ({"action": "message", "run_id": NO_RUN}, "text"),
        ({"action": "message", "run_id": NO_RUN, "text": " "}, "text"),
        ({"action": "message", "run_id": NO_RUN, "text": "x" * 8_001}, "text"),
        ({"action": "approve", "run_id": NO_RUN}, "approval_id"),
        ({"action": "approve", "run_id": NO_RUN, "approval_id": "a", "scope": "all"}, "scope"),
        ({"action": "budget", "run_id": NO_RUN, "max_turns": 0}, "max_turns"),
        ({"action": "budget", "run_id": NO_RUN, "key": ""}, "key"),
        ({"action": "budget", "run_id": NO_RUN, "key": "with space"}, "key"),
        ({"action": "budget", "run_id": NO_RUN, "key": "k" * 256}, "key"),
        ({"action": "subscribe", "run_id": NO_RUN, "key": "k"}, "key"),
    ],
)
def test_what_is_wrong_is_named_as_over_https(world: World, message: dict[str, Any], field: str) -> None:
    world.connect("c1")
    (frame,) = send(world, message)
    assert (frame["type"], frame["error"]["type"]) == ("error", "validation_error")
    assert [detail["field"] for detail in frame["error"]["details"]] == [field]


def test_an_error_carries_the_key_of_its_message(world: World) -> None:
    world.connect("c1")
    (frame,) = send(world, {"action": "message", "run_id": "x", "key": "k-9"})
    assert (frame["type"], frame["key"]) == ("error", "k-9")
