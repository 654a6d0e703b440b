"""A suspended run goes on when what it waited for has come, whenever that was, and only then."""

from __future__ import annotations

import pytest

from sandpiper.errors import Conflict, NotFound, ValidationError
from sandpiper.logic.outcomes import Ending
from sandpiper.models.run import Budget, RunResult, Usage
from sandpiper.models.spec import RunSpec
from tests.unit.logic.world import ANN, BOB, World

SPEC = RunSpec(task="Fix it", max_turns=3)
SPENT = RunResult(
    outcome="suspended",
    suspend_reason="budget_exhausted",
    exhausted="max_turns",
    limits=Budget(max_turns=3, timeout_seconds=900),
    usage=Usage(turns=3, cost_usd=0.25),
)
ASKS = RunResult(outcome="suspended", suspend_reason="awaiting_input", question="Which one?", usage=Usage(turns=1))
PAUSED = RunResult(outcome="suspended", suspend_reason="paused")
GOES_ON = {"cancelled": False}


# budget


def test_continuing_raises_what_is_used_up_and_wakes_the_run(world: World) -> None:
    run_id, token = world.suspended(SPENT, SPEC)
    assert world.controls.grant(run_id, Budget(), ANN).budget == Budget(max_turns=27)
    assert world.workflow.answers[token] == GOES_ON
    assert world.last_event(run_id) == (
        "agent_budget_extended",
        {"by": "ann", "old": {"max_turns": 3}, "new": {"max_turns": 27}},
    )


def test_continuing_twice_is_continuing_once(world: World) -> None:
    run_id, _ = world.suspended(SPENT, SPEC)
    first = world.controls.grant(run_id, Budget(), ANN)
    assert world.controls.grant(run_id, Budget(), ANN) == first
    world.acquire(run_id)
    assert world.controls.grant(run_id, Budget(), ANN).budget == first.budget
    assert world.event_types(run_id).count("agent_budget_extended") == 1


def test_a_grant_whose_caller_died_before_waking_the_run_is_finished_by_the_next(world: World) -> None:
    run_id, token = world.suspended(SPENT, SPEC)
    world.runs.change(run_id, allowed=("suspended",), changes={"budget": Budget(max_turns=27)})
    world.controls.grant(run_id, Budget(), ANN)
    assert world.workflow.answers[token] == GOES_ON


def test_a_grant_of_something_else_does_not_wake_the_run(world: World) -> None:
    run_id, token = world.suspended(SPENT, SPEC)
    world.controls.grant(run_id, Budget(timeout_seconds=1800), ANN)
    assert token not in world.workflow.answers


def test_a_running_run_is_given_more(world: World) -> None:
    run_id = world.running(spec=SPEC)
    assert world.controls.grant(run_id, Budget(max_turns=10), ANN).budget == Budget(max_turns=10)
    assert world.workflow.answers.keys() == {f"slot-{run_id}"}


def test_a_run_in_line_is_not_called_up_by_a_grant(world: World) -> None:
    run_id, _ = world.suspended(SPENT, SPEC)
    world.dispatched()
    world.controls.grant(run_id, Budget(), ANN)
    world.steps.acquire_slot(run_id, world.token("in line"))
    world.controls.grant(run_id, Budget(max_turns=100), ANN)
    assert (world.get(run_id).queue_position, world.get(run_id).resume_token) == (1, "in line")
    assert "in line" not in world.workflow.answers


def test_a_limit_below_what_is_used_is_refused_and_changes_nothing(world: World) -> None:
    run_id, _ = world.suspended(SPENT, SPEC)
    with pytest.raises(ValidationError):
        world.controls.grant(run_id, Budget(max_turns=3, timeout_seconds=1800), ANN)
    assert world.get(run_id).budget == Budget()


# messages


def test_a_message_is_in_the_inbox_and_in_the_log(world: World) -> None:
    run_id = world.running()
    message, _ = world.controls.say(run_id, "Use the new API", ANN)
    assert world.runs.controls(run_id, after=0) == [message]
    assert (message.action, message.by, message.data) == ("message", "ann", {"text": "Use the new API"})
    assert world.last_event(run_id) == (
        "run_message_received",
        {"n": 1, "by": "ann", "text": "Use the new API"},
    )


def test_an_answer_wakes_the_run_that_asked(world: World) -> None:
    run_id, token = world.suspended(ASKS)
    world.controls.say(run_id, "The first", ANN)
    assert world.workflow.answers[token] == GOES_ON


@pytest.mark.parametrize("result", [SPENT, PAUSED])
def test_a_message_to_a_run_that_waits_for_something_else_is_kept_for_later(world: World, result: RunResult) -> None:
    run_id, token = world.suspended(result, SPEC)
    world.controls.say(run_id, "Hello", ANN)
    assert token not in world.workflow.answers
    assert world.get(run_id).last_inbox == 1


def test_a_message_sent_again_with_its_key_is_said_once(world: World) -> None:
    run_id = world.running()
    sent = [world.controls.say(run_id, "Hello", ANN, key="k")[0] for _ in range(2)]
    assert sent[0] == sent[1]
    assert world.event_types(run_id).count("run_message_received") == 1


def test_a_message_sent_again_after_the_end_is_answered_as_before(world: World) -> None:
    run_id = world.running()
    sent = world.controls.say(run_id, "Hello", ANN, key="k")[0]
    world.steps.finalize(run_id, Ending(cancelled=True))
    assert world.controls.say(run_id, "Hello", ANN, key="k")[0] == sent


def test_an_old_answer_sent_again_does_not_answer_the_next_question(world: World) -> None:
    run_id, _ = world.suspended(ASKS)
    world.controls.say(run_id, "The first", ANN, key="k")
    world.acquire(run_id)
    world.steps.prepare(run_id)
    token = world.suspend(run_id, ASKS.model_copy(update={"inbox_seen": 1}))
    world.controls.say(run_id, "The first", ANN, key="k")
    assert token not in world.workflow.answers


# resume


def test_a_paused_run_is_resumed_and_asked_for_it_once(world: World) -> None:
    run_id, token = world.suspended(PAUSED)
    for _ in range(2):
        world.controls.resume(run_id, ANN)
    assert world.workflow.answers[token] == GOES_ON
    assert [request.action for request in world.runs.controls(run_id, after=0)] == ["resume"]


@pytest.mark.parametrize(("result", "words"), [(SPENT, "raise it"), (ASKS, "send it a message")])
def test_a_run_that_waits_for_something_says_what(world: World, result: RunResult, words: str) -> None:
    run_id, token = world.suspended(result, SPEC)
    with pytest.raises(Conflict, match=words):
        world.controls.resume(run_id, ANN)
    assert token not in world.workflow.answers


def test_a_run_that_is_not_suspended_is_left_as_it_is(world: World) -> None:
    run_id = world.running()
    assert world.controls.resume(run_id, ANN) == world.get(run_id)
    assert world.runs.controls(run_id, after=0) == []


def test_the_resume_of_one_pause_is_no_answer_to_the_next(world: World) -> None:
    run_id, _ = world.suspended(PAUSED)
    world.controls.resume(run_id, ANN)
    world.acquire(run_id)
    world.steps.prepare(run_id)
    assert world.suspend(run_id, PAUSED) not in world.workflow.answers


# all of them


@pytest.mark.parametrize("ask", ["grant", "say", "resume", "pause"])
def test_nothing_is_asked_of_a_run_that_has_ended_or_is_not_ones_own(world: World, ask: str) -> None:
    run_id = world.running()

    def asked(identity: object) -> object:
        extra = {"grant": [Budget(max_turns=99)], "say": ["Hello"], "resume": [], "pause": []}[ask]
        return getattr(world.controls, ask)(run_id, *extra, identity)

    with pytest.raises(NotFound):
        asked(BOB)
    world.steps.finalize(run_id, Ending(cancelled=True))
    with pytest.raises(Conflict):
        asked(ANN)


# while it is being suspended


def test_a_budget_that_was_raised_before_the_suspension_was_written_is_not_lost(world: World) -> None:
    run_id = world.running(spec=SPEC)
    world.controls.grant(run_id, Budget(max_turns=10), ANN)
    assert world.workflow.answers[world.suspend(run_id, SPENT)] == GOES_ON


def test_a_budget_that_the_sandbox_knew_is_no_reason_to_go_on(world: World) -> None:
    run_id = world.running(spec=SPEC)
    world.controls.grant(run_id, Budget(max_turns=10), ANN)
    knew = {"limits": Budget(max_turns=10), "usage": Usage(turns=10)}
    assert world.suspend(run_id, SPENT.model_copy(update=knew)) not in world.workflow.answers


def test_an_answer_that_came_before_the_suspension_was_written_is_not_lost(world: World) -> None:
    run_id = world.running()
    world.controls.say(run_id, "The first", ANN)
    assert world.workflow.answers[world.suspend(run_id, ASKS)] == GOES_ON


def test_a_message_that_the_sandbox_had_seen_is_no_answer(world: World) -> None:
    run_id = world.running()
    world.controls.say(run_id, "Hello", ANN)
    seen = ASKS.model_copy(update={"inbox_seen": 1})
    assert world.suspend(run_id, seen) not in world.workflow.answers


@pytest.mark.parametrize("result", [SPENT, ASKS, PAUSED])
def test_a_wish_that_found_only_the_token_of_an_earlier_try_is_not_lost(world: World, result: RunResult) -> None:
    run_id, token = world.suspended(result, SPEC)
    world.workflow.expire(token)
    if result is SPENT:
        world.controls.grant(run_id, Budget(), ANN)
    elif result is ASKS:
        world.controls.say(run_id, "The first", ANN)
    else:
        world.controls.resume(run_id, ANN)
    world.steps.suspend(run_id, world.token("second try"), world.hand_in(run_id, result))
    assert world.workflow.answers["second try"] == GOES_ON
