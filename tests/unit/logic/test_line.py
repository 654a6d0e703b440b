"""Two lines, one behind the other: of the user, then of the organization."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from sandpiper import limits
from sandpiper.logic.line import estimated_wait
from sandpiper.logic.outcomes import Ending
from sandpiper.models.quota import Quota, Scope
from sandpiper.models.run import Run, RunResult
from sandpiper.testing.clock import FakeClock
from tests.unit.logic.world import ANN, BOB, SPEC

if TYPE_CHECKING:
    from sandpiper.models.identity import Identity
    from tests.unit.logic.world import World

ACME = Scope("org", "acme")


def place(world: World, run_id: str) -> tuple[str | None, int | None]:
    run = world.get(run_id)
    return run.queue_line, run.queue_position


def at_once(world: World, *, user: int, org: int | None = None) -> None:
    for name in ("ann", "bob"):
        world.quotas.set_limits(Scope("user", name), Quota(concurrency=user))
    world.quotas.set_limits(ACME, Quota(concurrency=org))


def in_line(world: World, identity: Identity = ANN) -> str:
    run_id = world.start(identity)
    world.acquire(run_id)
    return run_id


def end(world: World, run_id: str) -> None:
    world.steps.finalize(run_id, Ending(cancelled=True))


def may_run(world: World, run_id: str) -> bool:
    return world.workflow.answers.get(f"slot-{run_id}") == {"cancelled": False}


def test_who_waits_is_told_each_time_the_line_moves(world: World) -> None:
    first, *waiting = [in_line(world) for _ in range(4)]
    assert [place(world, run_id) for run_id in waiting] == [("user", 1), ("user", 2), ("user", 3)]
    end(world, waiting[1])
    assert place(world, waiting[2]) == ("user", 2)
    end(world, first)
    assert may_run(world, waiting[0])
    assert place(world, waiting[2]) == ("user", 1)
    events = world.runs.events(waiting[2], after=0, limit=99)
    told = [event.data for event in events if event.type == "run_slot_waiting"]
    assert [(data["position"], data["estimated_wait_seconds"]) for data in told] == [(3, 2700), (2, 1800), (1, 900)]


def test_who_was_started_first_is_served_first_though_it_comes_to_the_line_last(world: World) -> None:
    working, early, late = in_line(world), world.start(), in_line(world)
    assert place(world, late) == ("user", 1)
    world.acquire(early)
    assert [place(world, run_id) for run_id in (early, late)] == [("user", 1), ("user", 2)]
    assert [world.get(run_id).estimated_wait_seconds for run_id in (early, late)] == [900, 1800]
    assert world.last_event(late)[1]["position"] == 2
    end(world, working)
    assert [may_run(world, run_id) for run_id in (early, late)] == [True, False]


def test_a_run_that_is_resumed_stands_before_all_that_were_started_after_it(world: World) -> None:
    resumed, _ = world.suspended(RunResult(outcome="suspended", suspend_reason="paused"))
    working, later = in_line(world), in_line(world)
    world.controls.resume(resumed, ANN)
    world.steps.acquire_slot(resumed, world.token("again"))
    assert [place(world, run_id) for run_id in (resumed, later)] == [("user", 1), ("user", 2)]
    end(world, working)
    assert (world.workflow.answers["again"], may_run(world, later)) == ({"cancelled": False}, False)


def test_who_is_far_behind_is_told_when_it_comes_near(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TOLD_IN_LINE", 1)
    first, _, third, fourth = [in_line(world) for _ in range(4)]
    end(world, first)
    assert [place(world, run_id)[1] for run_id in (third, fourth)] == [1, 3]


def test_a_dispatched_run_waits_nowhere(world: World) -> None:
    first, second = in_line(world), in_line(world)
    end(world, first)
    world.steps.prepare(second)
    run = world.get(second)
    assert (run.queue_position, run.queue_line, run.estimated_wait_seconds) == (None, None, None)


def test_an_organization_lets_only_so_many_work_whoever_they_belong_to(world: World) -> None:
    at_once(world, user=2, org=2)
    anns, bobs = [in_line(world) for _ in range(2)], in_line(world, BOB)
    assert [may_run(world, run_id) for run_id in (*anns, bobs)] == [True, True, False]
    assert place(world, bobs) == ("org", 1)
    end(world, anns[0])
    assert may_run(world, bobs)


def test_a_user_with_many_runs_does_not_fill_the_line_of_the_organization(world: World) -> None:
    at_once(world, user=1, org=1)
    working, second, third = [in_line(world) for _ in range(3)]
    bobs = in_line(world, BOB)
    assert [place(world, run_id) for run_id in (second, third, bobs)] == [("user", 1), ("user", 2), ("org", 1)]
    end(world, working)
    assert may_run(world, bobs)
    assert place(world, second) == ("org", 1)
    end(world, bobs)
    assert may_run(world, second)
    assert not may_run(world, third)


def test_a_run_that_is_cancelled_while_it_waits_for_the_organization_frees_both(world: World) -> None:
    at_once(world, user=1, org=1)
    working, bobs = in_line(world), in_line(world, BOB)
    end(world, bobs)
    assert (world.slots.active("bob"), world.slots.held(ACME).waiting) == ([], ())
    end(world, working)
    assert may_run(world, in_line(world, BOB))


def test_without_a_limit_of_the_organization_nobody_waits_for_it(world: World) -> None:
    at_once(world, user=1)
    assert all(may_run(world, in_line(world, who)) for who in (ANN, BOB))
    assert world.slots.held(ACME).active == frozenset()


def test_a_limit_that_is_taken_away_lets_everybody_go_on(world: World) -> None:
    at_once(world, user=5, org=1)
    runs = [in_line(world) for _ in range(3)]
    world.line.set_limits(ACME, Quota())
    assert all(may_run(world, run_id) for run_id in runs)


def test_a_repeated_request_is_woken_by_its_newest_token_also_behind_the_second_line(world: World) -> None:
    at_once(world, user=1, org=1)
    anns, bobs = in_line(world), in_line(world, BOB)
    second = in_line(world)
    end(world, anns)
    world.steps.acquire_slot(second, world.token("newest"))
    world.line.move_up(Scope("user", "ann"))  # names the run again, as every release does until it is dispatched
    end(world, bobs)
    assert world.workflow.answers["newest"] == {"cancelled": False}


def test_a_run_that_ended_while_it_was_called_up_keeps_no_slot(world: World) -> None:
    at_once(world, user=1, org=1)
    first, second = in_line(world), in_line(world)
    ended = world.runs.change(second, allowed=["queued"], changes={"status": "failed"})
    end(world, first)
    assert (world.slots.active("ann"), world.slots.held(ACME).active) == ([], frozenset())
    assert ended.is_terminal


@pytest.mark.parametrize(("position", "limit", "rounds"), [(1, 1, 1), (3, 1, 3), (2, 2, 1), (3, 2, 2)])
def test_the_wait_is_as_many_rounds_of_what_runs_usually_take(position: int, limit: int, rounds: int) -> None:
    def a_run(seconds: float | None) -> Run:
        now = FakeClock().now()
        ended = None if seconds is None else now + timedelta(seconds=seconds)
        return Run(run_id="r", owner="o", spec=SPEC, created_at=now, updated_at=now, started_at=now, ended_at=ended)

    recent = [a_run(seconds) for seconds in (10, 1000, 60, None)]
    assert estimated_wait(a_run(None), recent, position, limit) == rounds * 60
    assert estimated_wait(a_run(None), [], position, limit) == rounds * SPEC.timeout_seconds
