from __future__ import annotations

from datetime import timedelta

import pytest

from sandpiper.errors import NotFound
from sandpiper.logic.access import own_run
from sandpiper.logic.artifacts import diff_download, log_download
from sandpiper.logic.outcomes import Ending
from sandpiper.models.run import RunResult
from tests.unit.logic.world import ANN, BOB, World


def test_an_owner_sees_the_run_and_nobody_else_does(world: World) -> None:
    run_id = world.start(ANN)
    assert own_run(world.runs, run_id, ANN).run_id == run_id
    with pytest.raises(NotFound, match=f"There is no run {run_id}"):
        own_run(world.runs, run_id, BOB)


def test_a_finished_run_has_links_that_expire(world: World) -> None:
    run_id = world.running()
    result = RunResult(outcome="completed", log_key=f"runs/{run_id}/attempts/1/log.txt", diff_key="runs/d")
    run = world.steps.finalize(run_id, Ending(result_key=world.hand_in(run_id, result))).run
    log = log_download(run, world.blobs, world.clock)
    assert log.expires_at == world.clock.now() + timedelta(minutes=15)
    assert log.url == f"https://blobs.test/runs/{run_id}/attempts/1/log.txt?filename={run_id}.log&expires=900"
    assert "runs/d" in diff_download(run, world.blobs, world.clock).url


def test_a_run_that_goes_on_has_no_log_yet(world: World) -> None:
    with pytest.raises(NotFound, match="There is no log yet"):
        log_download(world.get(world.running()), world.blobs, world.clock)


def test_a_run_that_changed_nothing_has_left_no_diff(world: World) -> None:
    run = world.steps.finalize(world.running(), Ending(cancelled=True)).run
    with pytest.raises(NotFound, match="has left no diff"):
        diff_download(run, world.blobs, world.clock)
