from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from sandpiper.errors import NotFound
from sandpiper.logic import log_parts
from sandpiper.logic.access import own_run
from sandpiper.logic.artifacts import LogDownload, diff_download, log_download
from sandpiper.logic.log_parts import LogPart
from sandpiper.logic.outcomes import Ending
from sandpiper.models.run import RunResult
from tests.unit.logic.world import ANN, BOB, World

if TYPE_CHECKING:
    from sandpiper.models.run import Run


def test_an_owner_sees_the_run_and_nobody_else_does(world: World) -> None:
    run_id = world.start(ANN)
    assert own_run(world.runs, run_id, ANN).run_id == run_id
    with pytest.raises(NotFound, match=f"There is no run {run_id}"):
        own_run(world.runs, run_id, BOB)


def linked(world: World, run: Run, after: str | None = None, limit: int = 10) -> LogDownload:
    return log_download(run, world.blobs, world.clock, after=after, limit=limit)


def leave(world: World, run_id: str, *parts: LogPart) -> None:
    for part in parts:
        log_parts.store(world.blobs, run_id, part, b"text")


def test_a_finished_run_has_links_that_expire(world: World) -> None:
    run_id = world.running()
    result = RunResult(outcome="completed", log_key=f"runs/{run_id}/attempts/1/log.txt", diff_key="runs/d")
    run = world.steps.finalize(run_id, Ending(result_key=world.hand_in(run_id, result))).run
    log = linked(world, run)
    assert log.expires_at == world.clock.now() + timedelta(minutes=15)
    assert log.url == f"https://blobs.test/runs/{run_id}/attempts/1/log.txt?filename={run_id}.log&expires=900"
    assert "runs/d" in diff_download(run, world.blobs, world.clock).url


def test_a_run_that_has_said_nothing_has_no_log_yet(world: World) -> None:
    with pytest.raises(NotFound, match="There is no log yet"):
        linked(world, world.get(world.running()))


def test_a_run_at_work_has_the_parts_of_its_log_so_far_page_by_page(world: World) -> None:
    run_id = world.running()
    parts = [LogPart(1, 1, 3, 9), LogPart(1, 2), LogPart(1, 3, 10, 10), LogPart(2, 1, 12, 12)]
    leave(world, run_id, *parts)
    run = world.get(run_id)
    first = linked(world, run, limit=3)
    rest = linked(world, run, after=first.parts[-1].part.name, limit=3)
    assert (first.url, [found.part for found in (*first.parts, *rest.parts)]) == (None, parts)
    assert f"runs/{run_id}/log/000001-00000001.3-9.log.gz" in first.parts[0].url
    assert f"filename={run_id}.000001-00000001.3-9.log.gz" in first.parts[0].url
    assert linked(world, run, after=parts[-1].name).parts == []


def test_a_run_that_goes_on_after_waiting_has_no_whole_log_until_it_rests_again(world: World) -> None:
    run_id = world.running()
    key = f"runs/{run_id}/attempts/1/log.txt"
    world.suspend(run_id, RunResult(outcome="suspended", suspend_reason="paused", log_key=key))
    leave(world, run_id, LogPart(1, 1))
    assert linked(world, world.get(run_id)).url
    world.controls.resume(run_id, ANN)
    world.acquire(run_id)
    world.steps.prepare(run_id)
    assert linked(world, world.get(run_id)).url is None


def test_a_run_whose_last_sandbox_died_has_its_parts_and_no_stale_whole(world: World) -> None:
    run_id = world.running()
    key = f"runs/{run_id}/attempts/1/log.txt"
    world.suspend(run_id, RunResult(outcome="suspended", suspend_reason="paused", log_key=key))
    world.controls.resume(run_id, ANN)
    world.acquire(run_id)
    world.steps.prepare(run_id)
    leave(world, run_id, LogPart(1, 1), LogPart(2, 1))
    run = world.steps.finalize(run_id, Ending(error="SandboxLost", cause="killed")).run
    assert run.is_terminal
    log = linked(world, run)
    assert (log.url, [found.part.attempt for found in log.parts]) == (None, [1, 2])


def test_a_run_that_changed_nothing_has_left_no_diff(world: World) -> None:
    run = world.steps.finalize(world.running(), Ending(cancelled=True)).run
    with pytest.raises(NotFound, match="has left no diff"):
        diff_download(run, world.blobs, world.clock)
