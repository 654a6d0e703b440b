"""What may be started and spent, decided on books and a clock that stands still."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.errors import PermissionDenied, QuotaExceeded
from sandpiper.logic.quotas import QuotaRules, require_admin
from sandpiper.models.identity import Identity
from sandpiper.models.quota import Account, Quota, Scope
from sandpiper.models.run import Run, RunResult, Usage
from sandpiper.testing.fakes import FakeClock, FakeQuotas
from tests.unit.logic.world import ANN, SPEC, World

if TYPE_CHECKING:
    from collections.abc import Iterable

ANNS = Scope("user", "ann")
ACME = Scope("org", "acme")
START = datetime(2026, 1, 31, 12, tzinfo=UTC)
SPENT = RunResult(outcome="suspended", suspend_reason="budget_exhausted", exhausted="max_cost_usd")


def rules(**defaults: Any) -> QuotaRules:
    return QuotaRules(FakeQuotas(), FakeClock(START), Quota(**defaults))


def account(*, seconds_ago: Iterable[float] = (), scope: Scope = ANNS, spent: float = 0.0, **limits: Any) -> Account:
    starts = tuple(START - timedelta(seconds=seconds) for seconds in sorted(seconds_ago))
    return Account(scope=scope, limits=Quota(**limits), starts=starts, spent_usd=spent)


def refusal(of: QuotaRules, asked: Account) -> QuotaExceeded:
    with pytest.raises(QuotaExceeded) as refused:
        of.admit(asked)
    return refused.value


def test_the_fifth_start_within_a_minute_waits_for_the_first_to_be_a_minute_old() -> None:
    four = rules(starts_per_minute=4)
    assert four.admit(account(seconds_ago=[5, 10, 20])).starts is not None
    refused = refusal(four, account(seconds_ago=[5, 10, 20, 59.5]))
    assert refused.retry_after == 1
    assert refused.details == [
        {
            "field": "starts_per_minute",
            "message": "4 runs may be started in a minute",
            "scope": "user",
            "limit": 4,
            "used": 4,
            "opens_at": "2026-01-31T12:00:00.500000Z",
        }
    ]
    assert four.admit(account(seconds_ago=[5, 10, 20, 60])).starts is not None


def test_starts_that_were_counted_by_a_clock_that_is_ahead_count_too() -> None:
    refused = refusal(rules(starts_per_minute=2), account(seconds_ago=[-3600, 10]))
    assert refused.retry_after == 50


def test_a_minute_is_any_sixty_seconds_and_a_day_any_24_hours() -> None:
    day = rules(starts_per_day=2)
    assert refusal(day, account(seconds_ago=[10, 24 * 3600 - 1])).retry_after == 1
    assert day.admit(account(seconds_ago=[10, 24 * 3600])).starts == (START, START - timedelta(seconds=10))


def test_all_that_is_used_up_is_named_and_the_last_to_open_says_when_to_come_back() -> None:
    refused = refusal(rules(starts_per_minute=1, starts_per_day=1, monthly_usd=5), account(seconds_ago=[1], spent=5))
    assert [detail["field"] for detail in refused.details or ()] == [
        "starts_per_minute",
        "starts_per_day",
        "monthly_usd",
    ]
    assert refused.retry_after == 24 * 3600 - 1


def test_dollars_come_back_with_the_next_month_also_in_december() -> None:
    december = QuotaRules(FakeQuotas(), FakeClock(datetime(2026, 12, 31, 23, 59, tzinfo=UTC)), Quota(monthly_usd=1))
    assert refusal(december, account(spent=1.5)).retry_after == 60


def test_what_an_admin_has_set_comes_before_the_default_and_the_rest_stays() -> None:
    both = rules(starts_per_minute=4, starts_per_day=25)
    assert both.in_force(ANNS, Quota(starts_per_day=3)) == Quota(starts_per_minute=4, starts_per_day=3)


def test_an_organization_has_only_the_limits_that_were_set() -> None:
    assert rules(starts_per_minute=1, monthly_usd=1).in_force(ACME, Quota()) == Quota()
    assert rules().in_force(ACME, Quota(concurrency=3)) == Quota(concurrency=3)


def test_nothing_is_written_down_where_nothing_is_limited() -> None:
    assert rules().admit(account()).starts is None


def test_only_the_starts_that_still_count_are_kept() -> None:
    kept = rules(starts_per_minute=4).admit(account(seconds_ago=[1, 59, 61])).starts
    assert kept is not None
    assert len(kept) == 3


def test_what_is_left_is_shown_with_each_limit() -> None:
    shown = rules(starts_per_minute=4, monthly_usd=10, concurrency=2).uses(account(seconds_ago=[1], spent=2.5), 2)
    assert {use.name: (use.limit, use.used, use.left) for use in shown} == {
        "starts_per_minute": (4, 1, 3),
        "starts_per_day": (None, 1, None),
        "monthly_usd": (10, 2.5, 7.5),
        "concurrency": (2, 2, 0),
    }


def test_only_the_scope_admin_may_set_quotas() -> None:
    with pytest.raises(PermissionDenied):
        require_admin(Identity(user="ann", scopes=frozenset({"administrator", "runs"})))
    require_admin(Identity(user="root", scopes=frozenset({"admin"})))


# ---- starting


def limit(world: World, scope: Scope = ANNS, **limits: Any) -> None:
    world.quotas.set_limits(scope, Quota(concurrency=1, **limits) if scope == ANNS else Quota(**limits))


def test_a_refused_start_leaves_nothing_behind(world: World) -> None:
    limit(world, starts_per_day=1)
    world.start()
    with pytest.raises(QuotaExceeded):
        world.starter.start(SPEC, ANN, {"github_token": "x"})
    assert (len(world.workflow.started), world.secrets.stored) == (1, {})
    assert world.runs.usage_of("ann", "2026-01").runs == 1


def test_a_start_that_the_organization_refuses_does_not_count_for_the_user(world: World) -> None:
    limit(world, starts_per_day=5)
    limit(world, ACME, starts_per_day=1)
    world.start()
    with pytest.raises(QuotaExceeded) as refused:
        world.start()
    assert "your organization" in refused.value.message
    assert len(world.quotas.account(ANNS, "2026-01").starts) == 1


def test_a_repeated_start_counts_once_and_is_answered_when_the_quota_is_used_up(world: World) -> None:
    limit(world, starts_per_day=1)
    first = world.starter.start(SPEC, ANN, {}, "key")
    assert world.starter.start(SPEC, ANN, {}, "key").run_id == first.run_id
    with pytest.raises(QuotaExceeded):
        world.starter.start(SPEC, ANN, {}, "another")


# ---- dollars


def spend(world: World, run: str, dollars: float) -> None:
    world.runs.change(run, allowed=["running"], changes={"usage": Usage(turns=1, cost_usd=dollars)})


def cost_limit(run: Run) -> float | None:
    return run.budget.month_usd


def test_a_run_may_use_what_the_month_leaves_when_its_sandbox_starts(world: World) -> None:
    limit(world, monthly_usd=10)
    limit(world, ACME, monthly_usd=8)
    first = world.running()
    assert cost_limit(world.get(first)) == 8
    spend(world, first, 3.0)
    world.reconciler.execution_ended(first, "FAILED", "")
    assert cost_limit(world.get(world.running())) == 5


def test_a_month_without_dollars_starts_nothing_more(world: World) -> None:
    limit(world, monthly_usd=1)
    spend(world, world.running(), 1.0)
    with pytest.raises(QuotaExceeded):
        world.start()
    world.clock.advance(31 * 24 * 3600)
    world.start()


def test_a_run_that_the_month_has_stopped_goes_on_in_the_next_one(world: World) -> None:
    limit(world, monthly_usd=1)
    run_id = world.running()
    token = world.suspend(run_id, SPENT.model_copy(update={"usage": Usage(turns=1, cost_usd=1.0)}))
    with pytest.raises(QuotaExceeded):
        world.controls.grant(run_id, world.get(run_id).budget.model_copy(update={"month_usd": None}), ANN)
    assert token not in world.workflow.answers
    world.clock.advance(31 * 24 * 3600)
    world.controls.grant(run_id, world.get(run_id).budget.model_copy(update={"month_usd": None}), ANN)
    assert world.workflow.answers[token] == {"cancelled": False}
    assert cost_limit(world.get(run_id)) == 2.0


def test_raising_the_limit_of_a_run_does_not_raise_that_of_the_month(world: World) -> None:
    limit(world, monthly_usd=4)
    run_id = world.running(spec=SPEC.model_copy(update={"max_cost_usd": 2.0}))
    world.suspend(run_id, SPENT.model_copy(update={"usage": Usage(turns=1, cost_usd=2.0)}))
    run = world.controls.grant(run_id, world.get(run_id).budget.model_copy(update={"max_cost_usd": 50.0}), ANN)
    assert (run.budget.max_cost_usd, run.budget.month_usd) == (50.0, 4.0)
