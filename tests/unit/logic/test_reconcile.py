from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandpiper.logic.outcomes import Ending
from sandpiper.logic.reconcile import Mended
from sandpiper.models.events import NewEvent
from sandpiper.models.quota import Scope
from sandpiper.models.run import RunResult

if TYPE_CHECKING:
    from tests.unit.logic.world import World

ANNS = Scope("user", "ann")
HOUR = 3600


@pytest.mark.parametrize(("status", "ends"), [("FAILED", "failed"), ("ABORTED", "failed"), ("TIMED_OUT", "timed_out")])
def test_a_run_whose_execution_ended_badly_is_finalized(world: World, status: str, ends: str) -> None:
    run_id = world.running()
    assert world.reconciler.execution_ended(run_id, status, "cause") == Mended(runs=[run_id])
    assert world.status(run_id) == ends
    assert world.sandboxes.running == {}
    assert world.slots.active("ann") == []


def test_a_result_that_was_handed_in_counts_even_if_the_workflow_failed(world: World) -> None:
    run_id = world.running()
    world.hand_in(run_id, RunResult(outcome="completed"))
    world.reconciler.execution_ended(run_id, "FAILED", "")
    assert world.status(run_id) == "completed"


def test_a_run_that_has_ended_is_not_counted_as_mended(world: World) -> None:
    run_id = world.running()
    world.reconciler.execution_ended(run_id, "FAILED", "")
    assert world.reconciler.execution_ended(run_id, "FAILED", "") == Mended()


@pytest.mark.parametrize("name", ["something-else", "run-00000000000000000000000000"])
def test_an_execution_that_belongs_to_no_run_is_left_alone(world: World, name: str) -> None:
    assert world.reconciler.execution_ended(name, "FAILED", "") == Mended()


def test_the_sweep_ends_runs_without_an_execution_and_no_others(world: World) -> None:
    lost, alive = world.start(), world.start()
    world.workflow.finish(lost)
    later(world)
    fresh = world.start()
    del world.workflow.statuses[fresh]
    assert world.reconciler.sweep() == Mended(runs=[lost])
    assert [world.status(run) for run in (lost, alive, fresh)] == ["failed", "queued", "queued"]


def test_a_lost_run_is_ended_although_the_clock_of_its_sandbox_was_ahead(world: World) -> None:
    lost = world.start()
    world.clock.advance(5 * HOUR)
    world.runs.append(lost, [NewEvent(type="warning")])
    world.clock.advance(-5 * HOUR)
    world.workflow.finish(lost)
    assert world.reconciler.sweep() == Mended(runs=[lost])


def test_an_execution_that_the_list_does_not_have_yet_is_looked_for(world: World) -> None:
    run_id = world.start()
    del world.workflow.started_at[run_id]
    later(world)
    assert world.reconciler.sweep() == Mended()


def test_a_second_sweep_finds_nothing(world: World) -> None:
    world.workflow.finish(world.start())
    later(world)
    world.reconciler.sweep()
    later(world)
    assert world.reconciler.sweep() == Mended()


def test_runs_in_every_state_of_health_give_it_nothing_to_do(world: World) -> None:
    """One at work, one in line, one suspended, one ended; with secrets, checkpoints and slots as they should be."""
    suspended, _ = world.suspended(RunResult(outcome="suspended", suspend_reason="paused"))
    ended, working, waiting = world.running(), "", ""
    end(world, ended)
    working, waiting = world.running(), world.start()
    world.acquire(waiting)
    for run_id in (suspended, working):
        world.secrets.put(run_id, {"github_token": "x"})
        world.blobs.put(f"runs/{run_id}/checkpoint/1", b"x", content_type="x")
    world.workflow.finish(ended)
    later(world)
    assert world.reconciler.sweep() == Mended()
    assert [world.status(run) for run in (suspended, working, waiting)] == ["suspended", "running", "queued"]
    assert len(world.secrets.stored) == 2


@pytest.mark.parametrize("how", ["without a run", "of a run that has ended"])
def test_an_execution_that_has_no_run_to_work_for_is_stopped_with_its_sandbox(world: World, how: str) -> None:
    run_id = world.running() if how != "without a run" else "run-00000000000000000000000000"
    if how == "without a run":
        world.workflow.start(run_id, {})
    else:
        world.runs.change(run_id, allowed=["running"], changes={"status": "failed"})
    assert world.reconciler.sweep().executions == []
    later(world)
    assert world.reconciler.sweep().executions == [run_id]
    assert not world.workflow.is_running(run_id)
    assert world.sandboxes.running == {}


def test_executions_of_others_are_left_alone(world: World) -> None:
    world.workflow.start("somebody-elses", {})
    later(world)
    assert world.reconciler.sweep() == Mended()


def test_a_slot_of_a_run_that_is_not_there_goes_to_the_next(world: World) -> None:
    world.slots.acquire(ANNS, "run-gone", since=world.clock.now(), limit=1, token="t")
    token = world.acquire(world.start())
    assert world.reconciler.sweep().slots == ["run-gone"]
    assert token in world.workflow.answers


def test_a_place_in_line_without_a_run_is_given_up(world: World) -> None:
    world.acquire(world.start())
    world.slots.acquire(ANNS, "run-gone", since=world.clock.now(), limit=1, token="t")
    assert world.reconciler.sweep().slots == ["run-gone"]
    assert world.slots.held(ANNS).waiting == ()


def test_a_slot_that_a_suspended_run_has_kept_is_given_back(world: World) -> None:
    run_id = world.running()
    world.runs.change(run_id, allowed=["running"], changes={"status": "suspended"})
    assert world.reconciler.sweep() == Mended()
    later(world)
    assert world.reconciler.sweep() == Mended(slots=[run_id])
    assert world.slots.active("ann") == []


def test_a_run_whose_turn_came_while_nobody_told_it_is_told(world: World) -> None:
    first, second = world.running(), world.start()
    token = world.acquire(second)
    world.runs.change(first, allowed=["running"], changes={"status": "failed"})  # and then nothing more
    world.workflow.finish(first)
    later(world)
    assert world.reconciler.sweep() == Mended(calls=[second])
    assert world.workflow.answers[token] == {"cancelled": False}


def test_a_call_that_was_lost_on_the_way_is_repeated(world: World) -> None:
    first, second = world.running(), world.start()
    world.acquire(second)
    world.slots.release(ANNS, first, limit=1)
    later(world)
    assert world.reconciler.sweep() == Mended(calls=[second])


@pytest.mark.parametrize("known", [True, False], ids=["ended", "unknown"])
def test_checkpoints_that_no_run_can_go_on_from_are_deleted_and_nothing_else(world: World, *, known: bool) -> None:
    run_id = world.running() if known else "run-00000000000000000000000000"
    if known:
        end(world, run_id)
        world.workflow.finish(run_id)
    keys = [f"runs/{run_id}/{name}" for name in ("checkpoint/1/tree.pack", "checkpoint.snapshot", "result.json")]
    for key in keys:
        world.blobs.put(key, b"x", content_type="x")
    later(world)
    assert world.reconciler.sweep() == Mended(checkpoints=[run_id])
    assert [key for key in keys if key in world.blobs.bodies] == keys[2:]


@pytest.mark.parametrize("known", [True, False], ids=["ended", "unknown"])
def test_secrets_of_a_run_that_needs_none_are_deleted(world: World, *, known: bool) -> None:
    run_id = world.running() if known else "run-gone"
    if known:
        end(world, run_id)
        world.workflow.finish(run_id)
    world.secrets.put(run_id, {"github_token": "x"})
    later(world)
    assert world.reconciler.sweep() == Mended(secrets=[run_id])
    assert world.secrets.stored == {}


def end(world: World, run_id: str) -> None:
    world.steps.finalize(run_id, Ending(cancelled=True))


def later(world: World) -> None:
    world.clock.advance(601)
