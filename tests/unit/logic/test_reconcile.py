from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandpiper.models.run import RunResult

if TYPE_CHECKING:
    from tests.unit.logic.world import World


@pytest.mark.parametrize(("status", "ends"), [("FAILED", "failed"), ("ABORTED", "failed"), ("TIMED_OUT", "timed_out")])
def test_a_run_whose_execution_ended_badly_is_finalized(world: World, status: str, ends: str) -> None:
    run_id = world.running()
    (mended,) = world.reconciler.execution_ended(run_id, status, "cause")
    assert (mended.run_id, mended.status) == (run_id, ends)
    assert world.sandboxes.running == {}
    assert world.slots.active("ann") == []


def test_a_result_that_was_handed_in_counts_even_if_the_workflow_failed(world: World) -> None:
    run_id = world.running()
    world.hand_in(run_id, RunResult(outcome="completed"))
    (mended,) = world.reconciler.execution_ended(run_id, "FAILED", "")
    assert mended.status == "completed"


def test_a_run_that_has_ended_is_not_counted_as_mended(world: World) -> None:
    run_id = world.running()
    world.reconciler.execution_ended(run_id, "FAILED", "")
    assert world.reconciler.execution_ended(run_id, "FAILED", "") == []


@pytest.mark.parametrize("name", ["something-else", "run-00000000000000000000000000"])
def test_an_execution_that_belongs_to_no_run_is_left_alone(world: World, name: str) -> None:
    assert world.reconciler.execution_ended(name, "FAILED", "") == []


def test_the_sweep_ends_runs_without_an_execution_and_no_others(world: World) -> None:
    lost, alive = world.start(), world.start()
    world.workflow.finish(lost)
    world.clock.advance(601)
    fresh = world.start()
    del world.workflow.statuses[fresh]
    assert [run.run_id for run in world.reconciler.sweep()] == [lost]
    assert [world.status(run) for run in (lost, alive, fresh)] == ["failed", "queued", "queued"]


def test_a_second_sweep_finds_nothing(world: World) -> None:
    world.workflow.finish(world.start())
    world.clock.advance(601)
    world.reconciler.sweep()
    world.clock.advance(601)
    assert world.reconciler.sweep() == []
