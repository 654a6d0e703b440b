from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.logic.outcomes import Ending
from sandpiper.models.run import Budget, ErrorInfo, LastReply, Run, RunResult, Status, Usage
from sandpiper.models.spec import RunSpec
from tests.unit.logic.world import ANN, BOB, SPEC, World

if TYPE_CHECKING:
    from sandpiper.models.quota import Scope

DONE = RunResult(outcome="completed", summary="All green")
PAUSED = RunResult(outcome="suspended", suspend_reason="awaiting_input")


# acquire_slot


def test_a_free_slot_is_given_at_once(world: World) -> None:
    run_id = world.start()
    token = world.acquire(run_id)
    assert world.workflow.answers == {token: {"cancelled": False}}
    assert world.slots.active("ann") == [run_id]


def test_a_run_over_its_owners_concurrency_waits_and_is_told_its_place(world: World) -> None:
    world.acquire(world.start())
    second, third = world.start(), world.start()
    tokens = [world.acquire(second), world.acquire(third)]
    assert not world.workflow.answers.keys() & set(tokens)
    assert [world.get(run).queue_position for run in (second, third)] == [1, 2]
    told = {"position": 2, "line": "user", "estimated_wait_seconds": 2 * SPEC.timeout_seconds}
    assert world.last_event(third) == ("run_slot_waiting", told)
    assert world.get(third).resume_token == tokens[1]


def test_owners_do_not_wait_for_one_another(world: World) -> None:
    world.acquire(world.start(ANN))
    token = world.acquire(world.start(BOB))
    assert world.workflow.answers[token] == {"cancelled": False}


def test_the_end_of_a_run_wakes_the_next_in_line(world: World) -> None:
    first, second, third = world.dispatched(), world.start(), world.start()
    tokens = {run: world.acquire(run) for run in (second, third)}
    world.steps.finalize(first, Ending(cancelled=True))
    assert world.workflow.answers[tokens[second]] == {"cancelled": False}
    assert tokens[third] not in world.workflow.answers
    assert world.slots.active("ann") == [second]


def test_a_run_that_was_cancelled_before_its_turn_is_told_so(world: World) -> None:
    run_id = world.start()
    world.controls.cancel(run_id, ANN)
    token = world.acquire(run_id)
    assert world.workflow.answers[token] == {"cancelled": True}
    assert world.slots.active("ann") == []


def test_a_repeated_request_for_a_slot_waits_at_the_same_place_without_a_second_event(world: World) -> None:
    world.acquire(world.start())
    run_id = world.start()
    world.acquire(run_id)
    world.steps.acquire_slot(run_id, world.token("second try"))
    assert world.get(run_id).queue_position == 1
    assert world.event_types(run_id).count("run_slot_waiting") == 1
    assert world.get(run_id).resume_token == "second try"


def test_a_cancel_in_the_moment_of_queueing_is_not_missed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.acquire(world.start())
    run_id = world.start()
    acquire = world.slots.acquire

    def acquire_while_somebody_cancels(owner: Scope, run: str, **asked: Any) -> int:
        place = acquire(owner, run, **asked)
        world.controls.cancel(run_id, ANN)
        return place

    monkeypatch.setattr(world.slots, "acquire", acquire_while_somebody_cancels)
    token = world.acquire(run_id)
    assert world.workflow.answers[token] == {"cancelled": True}


@pytest.mark.parametrize("taken_by_others", [0, 1], ids=["a slot", "a place in line"])
def test_a_run_that_was_ended_in_the_moment_of_joining_keeps_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, taken_by_others: int
) -> None:
    others = [world.dispatched() for _ in range(taken_by_others)]
    run_id = world.start()
    acquire = world.slots.acquire

    def acquire_after_it_ended(owner: Scope, run: str, **asked: Any) -> int:
        world.steps.finalize(run_id, Ending(error="Aborted"))
        return acquire(owner, run, **asked)

    monkeypatch.setattr(world.slots, "acquire", acquire_after_it_ended)
    world.acquire(run_id)
    monkeypatch.undo()
    for other in others:
        world.steps.finalize(other, Ending(cancelled=True))
    next_token = world.acquire(world.start())
    assert world.workflow.answers[next_token] == {"cancelled": False}


def test_a_slot_that_comes_in_the_moment_of_queueing_is_taken(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = world.dispatched(), world.start()
    acquire = world.slots.acquire

    def acquire_while_the_first_ends(owner: Scope, run: str, **asked: Any) -> int:
        place = acquire(owner, run, **asked)
        world.steps.finalize(first, Ending(cancelled=True))
        world.steps.prepare(second)
        return place

    monkeypatch.setattr(world.slots, "acquire", acquire_while_the_first_ends)
    token = world.acquire(second)
    assert world.workflow.answers[token] == {"cancelled": False}
    assert (world.status(second), world.get(second).resume_token) == ("provisioning", None)


# prepare


def test_preparing_counts_the_attempt_stores_the_spec_and_leaves_the_line(world: World) -> None:
    run_id = world.start()
    world.acquire(run_id)
    prepared = world.steps.prepare(run_id)
    assert (prepared.cancelled, prepared.attempt, prepared.token_timeout_seconds) == (False, 1, 300 + 900 + 600 + 300)
    assert RunSpec.model_validate_json(world.blobs.get(f"runs/{run_id}/spec.json")) == SPEC
    assert world.status(run_id) == "provisioning"
    assert world.last_event(run_id) == ("run_dispatched", {"attempt": 1})


def test_a_repeated_prepare_gives_the_same_attempt(world: World) -> None:
    run_id = world.dispatched()
    assert world.steps.prepare(run_id).attempt == 1
    assert world.event_types(run_id).count("run_dispatched") == 1


def test_a_cancelled_run_is_not_prepared(world: World) -> None:
    run_id = world.start()
    world.controls.cancel(run_id, ANN)
    assert world.steps.prepare(run_id).cancelled
    assert world.status(run_id) == "queued"


@pytest.mark.parametrize(
    ("use_spot", "capacities"),
    [(False, ["FARGATE"] * 3), (True, ["FARGATE_SPOT", "FARGATE_SPOT", "FARGATE"])],
)
def test_the_last_attempt_is_always_on_demand(
    world: World,
    use_spot: bool,  # noqa: FBT001
    capacities: list[str],
) -> None:
    steps = type(world.steps)(**{**vars(world.steps), "use_spot": use_spot})
    run_id = world.start()
    seen = []
    for _ in capacities:
        seen.append(steps.prepare(run_id).capacity)
        steps.recover(run_id, "SandboxLost", "")
    assert seen == capacities


# suspend


def test_a_suspended_run_gives_its_slot_back_and_keeps_its_token(world: World) -> None:
    run_id, waiting = world.running(), world.start()
    waiting_token = world.acquire(waiting)
    key = world.hand_in(run_id, PAUSED)
    world.steps.suspend(run_id, world.token("suspended"), key)
    run = world.get(run_id)
    assert (run.status, run.suspend_reason, run.resume_token) == ("suspended", "awaiting_input", "suspended")
    assert world.workflow.answers[waiting_token] == {"cancelled": False}
    assert world.last_event(run_id) == ("run_suspended", {"reason": "awaiting_input"})


def test_a_suspension_keeps_the_books_the_question_and_no_sandbox(world: World) -> None:
    result = PAUSED.model_copy(update={"question": "Which?", "usage": Usage(turns=2, cost_usd=0.5)})
    run_id, _ = world.suspended(result)
    run = world.get(run_id)
    assert (run.result, run.usage) == (result, result.usage)
    assert world.runs.usage_of("ann", "2026-01").cost_usd == 0.5
    assert world.sandboxes.running == {}
    assert world.last_event(run_id) == ("run_suspended", {"reason": "awaiting_input", "question": "Which?"})


def test_a_repeated_suspend_takes_the_new_token_and_says_nothing_twice(world: World) -> None:
    run_id = world.running()
    key = world.hand_in(run_id, PAUSED)
    world.steps.suspend(run_id, world.token("one"), key)
    world.steps.suspend(run_id, world.token("two"), key)
    assert world.get(run_id).resume_token == "two"
    assert world.event_types(run_id).count("run_suspended") == 1


def test_a_run_that_was_cancelled_while_it_suspended_is_woken_at_once(world: World) -> None:
    run_id = world.running()
    world.controls.cancel(run_id, ANN)
    world.steps.suspend(run_id, world.token("suspended"), world.hand_in(run_id, PAUSED))
    assert world.workflow.answers["suspended"] == {"cancelled": True}


def test_a_resumed_run_queues_again_and_goes_on_with_the_next_attempt(world: World) -> None:
    run_id = world.running()
    world.steps.suspend(run_id, world.token("suspended"), world.hand_in(run_id, PAUSED))
    world.steps.acquire_slot(run_id, world.token("again"))
    run = world.get(run_id)
    assert (run.status, run.suspend_reason, run.resume_token) == ("queued", None, None)
    assert world.last_event(run_id) == ("run_resumed", {"reason": "awaiting_input"})
    assert world.steps.prepare(run_id).attempt == 2


# recover


def test_a_lost_sandbox_is_replaced(world: World) -> None:
    run_id = world.running()
    assert world.steps.recover(run_id, "SandboxLost", "Spot took it")
    assert world.sandboxes.running == {}
    assert world.last_event(run_id) == (
        "run_recovered",
        {"error": "SandboxLost", "cause": "Spot took it", "attempt": 1, "kept_turns": 0},
    )
    assert world.steps.prepare(run_id).attempt == 2
    assert world.slots.active("ann") == [run_id]


def test_a_repeated_recover_only_says_again(world: World) -> None:
    run_id = world.running()
    assert [world.steps.recover(run_id, "SandboxLost", "") for _ in range(2)] == [True, True]
    assert world.event_types(run_id).count("run_recovered") == 1


def test_at_most_three_sandboxes_are_lost(world: World) -> None:
    run_id = world.start()
    again = []
    for _ in range(3):
        world.steps.prepare(run_id)
        again.append(world.steps.recover(run_id, "SandboxLost", ""))
    assert again == [True, True, False]
    assert (world.get(run_id).attempt, world.get(run_id).losses) == (3, 2)


def test_being_resumed_costs_no_try(world: World) -> None:
    run_id = world.running()
    for _ in range(4):
        world.suspend(run_id, PAUSED)
        world.acquire(run_id)
        world.steps.prepare(run_id)
    assert world.get(run_id).attempt == 5
    assert world.steps.recover(run_id, "SandboxLost", "")
    assert (world.get(run_id).losses, world.get(run_id).status) == (1, "queued")


def test_a_run_that_was_lost_goes_on_from_its_checkpoint(world: World) -> None:
    run_id = world.running()
    changes = {"checkpoint_key": "k", "checkpoint_turn": 7}
    world.runs.change(run_id, allowed=("running",), changes=changes, attempt=1)
    world.steps.recover(run_id, "SandboxLost", "")
    world.steps.prepare(run_id)
    assert (world.get(run_id).attempt, world.get(run_id).checkpoint_key) == (2, "k")
    (told,) = [event for event in world.runs.events(run_id, after=0, limit=100) if event.type == "run_recovered"]
    assert told.data["kept_turns"] == 7


@pytest.mark.parametrize(("after", "kept"), [("k", 8), ("of an older state", 7)])
def test_a_reply_that_was_stored_beside_the_checkpoint_is_kept_and_counted(world: World, after: str, kept: int) -> None:
    run_id = world.running()
    changes = {"checkpoint_key": "k", "checkpoint_turn": 7, "usage": Usage(turns=7, cost_usd=0.7)}
    world.runs.change(run_id, allowed=("running",), changes=changes, attempt=1)
    reply = LastReply(after=after, usage=Usage(turns=8, cost_usd=0.8), step="{}")
    world.runs.put_reply(run_id, reply, attempt=1)
    world.steps.recover(run_id, "SandboxLost", "")
    assert dict(world.last_event(run_id)[1])["kept_turns"] == kept
    assert world.get(run_id).usage == Usage(turns=kept, cost_usd=kept / 10)


def test_a_reply_that_was_paid_for_counts_if_the_run_ends_with_its_last_sandbox(world: World) -> None:
    run_id = world.running()
    world.runs.change(run_id, allowed=("running",), changes={"checkpoint_key": "k"}, attempt=1)
    world.runs.put_reply(run_id, LastReply(after="k", usage=Usage(turns=1, cost_usd=0.1), step="{}"), attempt=1)
    world.steps.finalize(run_id, Ending(error="SandboxLost", cause=""))
    assert (world.get(run_id).status, world.get(run_id).usage) == ("failed", Usage(turns=1, cost_usd=0.1))
    assert world.runs.last_reply(run_id) is None


def test_the_state_machine_waits_longer_for_a_run_that_was_given_more_time(world: World) -> None:
    run_id, _ = world.suspended(PAUSED)
    world.controls.grant(run_id, Budget(timeout_seconds=1800), ANN)
    world.acquire(run_id)
    assert world.steps.prepare(run_id).token_timeout_seconds == 300 + 1800 + 600 + 300


def test_a_run_that_was_given_more_time_while_it_worked_goes_on_and_has_lost_nothing(world: World) -> None:
    run_id = world.running()
    world.controls.grant(run_id, Budget(timeout_seconds=1800), ANN)
    assert world.steps.prepare(run_id).token_timeout_seconds == 300 + 900 + 600 + 300
    assert world.steps.recover(run_id, "States.Timeout", "")
    assert world.get(run_id).losses == 0
    assert world.steps.prepare(run_id).token_timeout_seconds == 300 + 1800 + 600 + 300
    assert not world.steps.recover(run_id, "States.Timeout", "")


def test_a_run_that_took_too_long_is_not_tried_again(world: World) -> None:
    run_id = world.running()
    assert not world.steps.recover(run_id, "States.Timeout", "")
    assert world.sandboxes.running == {}


def test_a_missed_heartbeat_is_a_lost_sandbox(world: World) -> None:
    assert world.steps.recover(world.running(), "States.HeartbeatTimeout", "")


def test_a_cancelled_run_is_not_tried_again(world: World) -> None:
    run_id = world.running()
    world.controls.cancel(run_id, ANN)
    assert not world.steps.recover(run_id, "SandboxLost", "")


def test_a_sandbox_that_died_after_handing_in_its_result_is_not_repeated(world: World) -> None:
    run_id = world.running()
    world.hand_in(run_id, DONE)
    assert not world.steps.recover(run_id, "SandboxLost", "")
    assert world.steps.finalize(run_id, Ending(error="SandboxLost")).run.status == "completed"


# finalize


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled", "timed_out"])
def test_a_run_ends_as_its_sandbox_reports(world: World, outcome: Status) -> None:
    run_id = world.running()
    result = RunResult.model_validate({"outcome": outcome, "summary": "s"})
    finalized = world.steps.finalize(run_id, Ending(result_key=world.hand_in(run_id, result)))
    assert (finalized.just_now, finalized.run.status, finalized.run.result) == (True, outcome, result)
    assert finalized.run.ended_at == world.clock.now()
    assert world.event_types(run_id)[-1] == f"run_{outcome}"


def test_the_error_of_a_failed_run_is_its_sandboxs(world: World) -> None:
    run_id = world.running()
    error = ErrorInfo(type="gate_failed", message="3 tests fail")
    key = world.hand_in(run_id, RunResult(outcome="failed", error=error))
    assert world.steps.finalize(run_id, Ending(result_key=key)).run.error == error
    assert world.last_event(run_id)[1]["error"]["type"] == "gate_failed"


@pytest.mark.parametrize(
    ("ending", "status", "error"),
    [
        (Ending(cancelled=True), "cancelled", "cancelled"),
        (Ending(error="States.Timeout"), "timed_out", "timeout"),
        (Ending(error="TIMED_OUT"), "timed_out", "timeout"),
        (Ending(error="SandboxLost", cause="gone"), "failed", "sandbox_lost"),
        (Ending(), "failed", "sandbox_lost"),
    ],
)
def test_a_run_without_a_result_ends_by_what_the_workflow_knows(
    world: World, ending: Ending, status: Status, error: str
) -> None:
    run = world.steps.finalize(world.running(), ending).run
    assert run.error is not None
    assert (run.status, run.error.type, run.error.retryable) == (status, error, error == "sandbox_lost")


def test_a_cancel_that_the_sandbox_did_not_live_to_see_still_cancels(world: World) -> None:
    run_id = world.running()
    world.controls.cancel(run_id, ANN)
    assert world.steps.finalize(run_id, Ending(error="SandboxLost")).run.status == "cancelled"


@pytest.mark.parametrize("dispatched", [False, True], ids=["while suspended", "when it had a new sandbox"])
def test_a_run_that_was_suspended_and_is_cancelled_keeps_what_it_had_done(world: World, *, dispatched: bool) -> None:
    done = PAUSED.model_copy(update={"diff_key": "d", "log_key": "l", "usage": Usage(turns=2)})
    run_id, _ = world.suspended(done)
    if dispatched:
        world.acquire(run_id)
        world.steps.prepare(run_id)
    run = world.steps.finalize(run_id, Ending(cancelled=True)).run
    assert run.result == done.model_copy(update={"outcome": "cancelled", "suspend_reason": None})
    assert (run.status, run.usage.turns) == ("cancelled", 2)


def test_a_run_that_nobody_answered_is_cancelled_and_says_so(world: World) -> None:
    run_id, _ = world.suspended(PAUSED)
    run = world.steps.finalize(run_id, Ending(error="States.Timeout")).run
    assert run.error is not None
    assert (run.status, run.error.message) == (
        "cancelled",
        "The run waited too long for somebody to let it go on.",
    )


def test_the_books_are_closed_with_the_last_result_and_never_run_backwards(world: World) -> None:
    run_id = world.running()
    world.runs.change(run_id, allowed=("running",), changes={"usage": Usage(turns=4, cost_usd=0.4)}, attempt=1)
    key = world.hand_in(run_id, RunResult(outcome="completed", usage=Usage(turns=5, cost_usd=0.5)))
    assert world.steps.finalize(run_id, Ending(result_key=key)).run.usage.cost_usd == 0.5
    lost = world.running()
    world.runs.change(lost, allowed=("running",), changes={"usage": Usage(turns=4, cost_usd=0.4)}, attempt=1)
    world.steps.finalize(lost, Ending(error="SandboxLost"))
    assert world.runs.usage_of("ann", "2026-01").cost_usd == 0.9


def test_checkpoints_are_deleted_at_the_end_and_nothing_else_is(world: World) -> None:
    run_id, other = world.running(), world.start()
    world.runs.change(run_id, allowed=("running",), changes={"checkpoint_key": "k"}, attempt=1)
    gone = [f"runs/{run_id}/checkpoint.json", f"runs/{run_id}/checkpoints/7/tree.bundle"]
    kept = [f"runs/{run_id}/attempts/1/log.txt", f"runs/{other}/checkpoint.json"]
    for key in gone + kept:
        world.blobs.put(key, b"x", content_type="text/plain")
    assert world.steps.finalize(run_id, Ending(error="SandboxLost")).run.checkpoint_key is None
    assert not world.blobs.bodies.keys() & set(gone)
    assert world.blobs.bodies.keys() >= set(kept)


def test_finalizing_leaves_nothing_behind(world: World) -> None:
    run_id = world.running()
    world.secrets.put(run_id, {"github_token": "t"})
    world.steps.finalize(run_id, Ending(error="SandboxLost"))
    assert (world.secrets.stored, world.sandboxes.running, world.slots.active("ann")) == ({}, {}, [])


def test_a_repeated_finalize_changes_nothing_but_finishes_the_cleaning(world: World) -> None:
    run_id = world.running()
    before: Run = world.steps.finalize(run_id, Ending(result_key=world.hand_in(run_id, DONE))).run
    world.secrets.put(run_id, {"github_token": "t"})
    finalized = world.steps.finalize(run_id, Ending(error="States.Timeout"))
    assert (finalized.just_now, finalized.run) == (False, before)
    assert world.secrets.stored == {}


def test_a_run_that_ends_in_line_gives_up_its_place(world: World) -> None:
    first, second, third = world.dispatched(), world.start(), world.start()
    tokens = {run: world.acquire(run) for run in (second, third)}
    world.steps.finalize(second, Ending(cancelled=True))
    world.steps.finalize(first, Ending(cancelled=True))
    assert world.workflow.answers[tokens[third]] == {"cancelled": False}
