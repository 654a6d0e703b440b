from __future__ import annotations

import pytest

from sandpiper.errors import Conflict, NotFound
from sandpiper.logic.outcomes import Ending
from tests.unit.logic.world import ANN, BOB, World


def test_a_running_run_is_asked_to_stop(world: World) -> None:
    run_id = world.running()
    run = world.controls.cancel(run_id, ANN)
    assert (run.status, run.cancel_requested) == ("running", True)
    (control,) = world.runs.controls(run_id, after=0)
    assert (control.action, control.by) == ("cancel", "ann")


def test_a_second_cancel_changes_nothing(world: World) -> None:
    run_id = world.running()
    world.controls.cancel(run_id, ANN)
    assert world.controls.cancel(run_id, ANN).cancel_requested
    assert len(world.runs.controls(run_id, after=0)) == 1


def test_a_run_in_line_is_woken_to_be_cancelled(world: World) -> None:
    world.acquire(world.start())
    run_id = world.start()
    token = world.acquire(run_id)
    world.controls.cancel(run_id, ANN)
    assert world.workflow.answers[token] == {"cancelled": True}


def test_a_cancel_that_comes_after_the_turn_is_left_to_the_next_step(world: World) -> None:
    world.acquire(world.start())
    run_id = world.start()
    world.workflow.expire(world.acquire(run_id))
    assert world.controls.cancel(run_id, ANN).cancel_requested
    assert world.steps.prepare(run_id).cancelled


def test_a_cancelled_run_stays_cancelled(world: World) -> None:
    run_id = world.running()
    world.steps.finalize(run_id, Ending(cancelled=True))
    assert world.controls.cancel(run_id, ANN).status == "cancelled"


def test_a_finished_run_cannot_be_cancelled(world: World) -> None:
    run_id = world.running()
    world.runs.change(run_id, allowed=("running",), changes={"status": "completed"})
    with pytest.raises(Conflict):
        world.controls.cancel(run_id, ANN)


def test_another_owners_run_does_not_exist_even_in_the_same_org(world: World) -> None:
    run_id = world.running(ANN)
    with pytest.raises(NotFound):
        world.controls.cancel(run_id, BOB)
    assert not world.get(run_id).cancel_requested
