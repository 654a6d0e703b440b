"""Approvals and pauses: asked of a run that waits in its sandbox or without one, answered once."""

from __future__ import annotations

import pytest

from sandpiper.errors import Conflict, NotFound
from sandpiper.logic.control import Answer
from sandpiper.logic.outcomes import Ending
from sandpiper.models.run import ApprovalRequest, RunResult
from tests.unit.logic.world import ANN, BOB, World

YES, NO = Answer("approve"), Answer("reject", "Not today")
PAUSED = RunResult(outcome="suspended", suspend_reason="paused")
GOES_ON = {"cancelled": False}


def asks(world: World, run_id: str, number: int = 1) -> RunResult:
    """The run asks; what its sandbox hands in when nobody answers."""
    request = ApprovalRequest(
        id=f"ap-{number}",
        tool="run_command",
        shown={"command": "git push"},
        reason="It pushes.",
        risk="high",
        kind="push",
        requested_at=world.clock.now(),
    )
    world.runs.change(run_id, allowed=("running",), changes={"approval": request})
    return RunResult(outcome="suspended", suspend_reason="awaiting_approval", approval=request)


def test_an_answer_is_in_the_inbox_and_in_the_log_and_nothing_is_asked_any_more(world: World) -> None:
    run_id = world.running()
    asks(world, run_id)
    assert world.controls.answer(run_id, "ap-1", Answer("approve", "Fine", "run"), ANN).approval is None
    (request,) = world.runs.controls(run_id, after=0)
    data = {"approval_id": "ap-1", "decision": "approve", "scope": "run", "kind": "push", "note": "Fine"}
    assert (request.action, request.by, request.data) == ("approve", "ann", data)
    assert world.last_event(run_id) == ("approval_resolved", {"n": 1, "by": "ann", **data})


@pytest.mark.parametrize("answer", [YES, NO])
def test_an_answer_wakes_the_run_that_waits_for_it(world: World, answer: Answer) -> None:
    run_id = world.running()
    token = world.suspend(run_id, asks(world, run_id))
    assert token not in world.workflow.answers
    world.controls.answer(run_id, "ap-1", answer, ANN)
    assert world.workflow.answers[token] == GOES_ON
    world.acquire(run_id)
    assert world.status(run_id) == "queued"


def test_the_same_answer_again_changes_nothing_and_another_one_is_refused(world: World) -> None:
    run_id = world.running()
    token = world.suspend(run_id, asks(world, run_id))
    for _ in range(2):
        world.controls.answer(run_id, "ap-1", NO, ANN)
    for other in (YES, Answer("reject", "Another note"), Answer("reject", "Not today", "run")):
        with pytest.raises(Conflict, match="answered already, by ann: reject"):
            world.controls.answer(run_id, "ap-1", other, ANN)
    assert world.workflow.answers[token] == GOES_ON
    assert len(world.runs.controls(run_id, after=0)) == 1


def test_an_answer_whose_caller_died_before_waking_the_run_is_finished_by_the_next(world: World) -> None:
    run_id = world.running()
    result = asks(world, run_id)
    world.controls.answer(run_id, "ap-1", YES, ANN)
    token = world.token("another")
    world.runs.change(
        run_id,
        allowed=("running",),
        changes={
            "status": "suspended",
            "suspend_reason": "awaiting_approval",
            "result": result,
            "resume_token": token,
        },
    )
    world.controls.answer(run_id, "ap-1", YES, ANN)
    assert world.workflow.answers[token] == GOES_ON


def test_an_answer_that_came_before_the_suspension_was_written_is_not_lost(world: World) -> None:
    run_id = world.running()
    result = asks(world, run_id)
    world.controls.answer(run_id, "ap-1", YES, ANN)
    assert world.workflow.answers[world.suspend(run_id, result)] == GOES_ON


def test_the_answer_to_one_request_is_none_to_the_next(world: World) -> None:
    run_id = world.running()
    asks(world, run_id, 1)
    world.controls.answer(run_id, "ap-1", YES, ANN)
    token = world.suspend(run_id, asks(world, run_id, 2))
    assert token not in world.workflow.answers
    world.controls.answer(run_id, "ap-1", YES, ANN)
    assert token not in world.workflow.answers


def test_a_message_is_no_approval(world: World) -> None:
    run_id = world.running()
    token = world.suspend(run_id, asks(world, run_id))
    world.controls.say(run_id, "Yes, do it", ANN)
    assert token not in world.workflow.answers
    with pytest.raises(Conflict, match="approve or reject"):
        world.controls.resume(run_id, ANN)


def test_what_was_not_asked_is_not_found_and_an_ended_run_asks_nothing(world: World) -> None:
    run_id = world.running()
    asks(world, run_id)
    for identity, approval in ((ANN, "ap-2"), (BOB, "ap-1")):
        with pytest.raises(NotFound):
            world.controls.answer(run_id, approval, YES, identity)
    world.steps.finalize(run_id, Ending(cancelled=True))
    assert world.get(run_id).approval is None
    with pytest.raises(Conflict):
        world.controls.answer(run_id, "ap-1", YES, ANN)


def test_an_approval_that_nobody_gives_expires_with_the_run(world: World) -> None:
    run_id = world.running()
    world.suspend(run_id, asks(world, run_id))
    world.steps.finalize(run_id, Ending(error="States.Timeout", cause=""))
    assert world.status(run_id) == "cancelled"
    assert world.event_types(run_id)[-2:] == ["approval_expired", "run_cancelled"]
    assert "approval_expired" not in world.event_types(_cancelled_while_asking(world))


def _cancelled_while_asking(world: World) -> str:
    run_id = world.running()
    world.suspend(run_id, asks(world, run_id))
    world.controls.cancel(run_id, ANN)
    world.steps.finalize(run_id, Ending(cancelled=True))
    return run_id


def test_what_a_lost_sandbox_has_asked_is_asked_no_more(world: World) -> None:
    run_id = world.running()
    asks(world, run_id)
    assert world.steps.recover(run_id, "SandboxLost", "")
    assert world.get(run_id).approval is None


# pause


def test_a_pause_is_asked_once_and_again_after_the_run_went_on(world: World) -> None:
    run_id = world.running()
    for _ in range(2):
        assert world.controls.pause(run_id, ANN).status == "running"
    token = world.suspend(run_id, PAUSED)
    assert token not in world.workflow.answers
    assert world.controls.pause(run_id, ANN, now=True).status == "suspended"
    world.controls.resume(run_id, ANN)
    assert world.workflow.answers[token] == GOES_ON
    world.acquire(run_id)
    world.steps.prepare(run_id)
    world.begin(run_id)
    world.controls.pause(run_id, ANN, now=True)
    told = [(request.action, request.data.get("now")) for request in world.runs.controls(run_id, after=0)]
    assert told == [("pause", False), ("resume", None), ("pause", True)]
    assert world.suspend(run_id, PAUSED) not in world.workflow.answers


def test_a_pause_can_be_taken_back_before_it_came_about(world: World) -> None:
    run_id = world.running()
    world.controls.pause(run_id, ANN)
    for _ in range(2):
        world.controls.resume(run_id, ANN)
    assert [request.action for request in world.runs.controls(run_id, after=0)] == ["pause", "resume"]
    assert world.workflow.answers[world.suspend(run_id, PAUSED)] == GOES_ON


def test_a_pause_after_one_that_was_taken_back_holds(world: World) -> None:
    run_id = world.running()
    for ask in (world.controls.pause, world.controls.resume, world.controls.pause):
        ask(run_id, ANN)
    token = world.suspend(run_id, PAUSED)
    assert token not in world.workflow.answers
    world.controls.resume(run_id, ANN)
    assert world.workflow.answers[token] == GOES_ON


def test_a_run_in_line_has_nothing_to_pause(world: World) -> None:
    run_id = world.start()
    with pytest.raises(Conflict, match="in line"):
        world.controls.pause(run_id, ANN)
