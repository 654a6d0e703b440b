"""The books: what an owner used in a month is exactly what his runs say, whoever wrote it and however often."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from sandpiper.errors import Conflict, Fenced
from sandpiper.models.run import MonthlyUsage, Usage
from tests.contract.samples import a_run

if TYPE_CHECKING:
    from sandpiper.models.run import Run
    from tests.contract.worlds import Store

MONTH = "2026-01"
USED = Usage(turns=3, input_tokens=100, output_tokens=20, cache_read_tokens=7, cache_write_tokens=5, cost_usd=0.1)


def use(store: Store, run: Run, usage: Usage, *, attempt: int | None = None) -> None:
    store.runs.change(run.run_id, allowed=["queued"], changes={"usage": usage}, attempt=attempt)


def test_a_month_without_runs_is_all_zero(store: Store, owner: str) -> None:
    assert store.runs.usage_of(owner, MONTH) == MonthlyUsage(month=MONTH)


def test_a_run_is_counted_when_it_is_created_and_once(store: Store, run: Run, owner: str) -> None:
    with pytest.raises(Conflict):
        store.runs.create(run, [])
    assert store.runs.usage_of(owner, MONTH) == MonthlyUsage(month=MONTH, runs=1)


def test_what_a_run_uses_is_added_once_however_often_it_is_written(store: Store, run: Run, owner: str) -> None:
    for _ in range(3):
        use(store, run, USED)
    assert store.runs.usage_of(owner, MONTH) == MonthlyUsage(month=MONTH, runs=1, **USED.model_dump())


def test_the_steps_of_a_cost_add_up_to_the_cost_itself(store: Store, run: Run, owner: str) -> None:
    for cost in (0.1, 0.3, 0.7, 1.1, 1.1000000000000003):
        use(store, run, Usage(cost_usd=cost))
    assert store.runs.usage_of(owner, MONTH).cost_usd == 1.1000000000000003


def test_runs_that_report_at_the_same_time_are_all_in_the_books(store: Store, owner: str) -> None:
    runs = [store.runs.create(a_run(owner, store.clock), []) for _ in range(6)]
    steps = [(run, Usage(turns=turn, cost_usd=turn / 100)) for turn in (1, 2, 3) for run in runs]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda step: use(store, *step), steps))
    used = store.runs.usage_of(owner, MONTH)
    stored = [store.runs.get(run.run_id).usage for run in runs]
    assert (used.runs, used.turns) == (6, sum(usage.turns for usage in stored))
    assert used.cost_usd == pytest.approx(sum(usage.cost_usd for usage in stored), abs=1e-12)


def test_a_month_ends_at_midnight_in_utc(store: Store, owner: str) -> None:
    run = store.runs.create(a_run(owner, store.clock), [])
    use(store, run, Usage(turns=2))
    store.clock.advance((datetime(2026, 2, 1, tzinfo=UTC) - store.clock.now()).total_seconds())
    use(store, run, Usage(turns=5))
    assert [store.runs.usage_of(owner, month).turns for month in ("2026-01", "2026-02")] == [2, 3]
    assert store.runs.usage_of(owner, "2026-02").runs == 0


def test_owners_have_books_of_their_own(store: Store, run: Run, owner: str) -> None:
    use(store, run, USED)
    assert store.runs.usage_of(f"{owner}-2", MONTH) == MonthlyUsage(month=MONTH)


def test_a_sandbox_that_was_replaced_books_nothing(store: Store, run: Run, owner: str) -> None:
    with pytest.raises(Fenced):
        use(store, run, USED, attempt=7)
    assert store.runs.usage_of(owner, MONTH).turns == 0
