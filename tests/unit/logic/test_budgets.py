from __future__ import annotations

from typing import Any

import pytest

from sandpiper.errors import Conflict, ValidationError
from sandpiper.logic import budgets
from sandpiper.models.run import Budget, Run, RunResult, Usage
from sandpiper.models.spec import RunSpec
from sandpiper.testing.clock import FakeClock

SPEC = RunSpec(task="Fix it", max_turns=48, max_cost_usd=2.0, timeout_seconds=900)
NOW = FakeClock().now()


def a_run(usage: Usage | None = None, **changes: Any) -> Run:
    given = {"spec": SPEC, "usage": usage or Usage(), **changes}
    return Run.model_validate({"run_id": "r", "owner": "ann", "created_at": NOW, "updated_at": NOW, **given})


def stopped(name: str, usage: Usage, budget: Budget | None = None, **changes: Any) -> Run:
    """A run that its sandbox has suspended because of one limit."""
    raised = budget or Budget()
    result = RunResult.model_validate(
        {
            "outcome": "suspended",
            "suspend_reason": "budget_exhausted",
            "exhausted": name,
            "limits": budgets.in_force(SPEC, raised),
        }
    )
    return a_run(usage, budget=raised, result=result, **changes)


def complaint(run: Run, **wanted: Any) -> list[Any]:
    with pytest.raises(ValidationError) as refusal:
        budgets.raised(run, Budget(**wanted))
    return list(refusal.value.details or ())


def test_a_limit_is_the_specs_until_it_is_raised() -> None:
    assert budgets.in_force(SPEC, Budget(max_turns=60)) == Budget(
        max_turns=60, max_cost_usd=2.0, max_total_tokens=None, timeout_seconds=900
    )


@pytest.mark.parametrize(
    ("usage", "names"),
    [
        (Usage(turns=47, cost_usd=1.99), []),
        (Usage(turns=48), ["max_turns"]),
        (Usage(turns=50, cost_usd=2.0), ["max_turns", "max_cost_usd"]),
    ],
)
def test_what_is_used_up_is_known_from_the_books(usage: Usage, names: list[str]) -> None:
    assert budgets.used_up(a_run(usage)) == names


def test_tokens_count_in_and_out_cached_or_not() -> None:
    usage = Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4)
    spec = SPEC.model_copy(update={"max_total_tokens": 10})
    assert budgets.used_up(a_run(usage, spec=spec)) == ["max_total_tokens"]
    assert budgets.used_up(a_run(usage, spec=spec, budget=Budget(max_total_tokens=11))) == []


def test_working_time_is_over_when_the_sandbox_says_so_until_it_is_raised() -> None:
    run = stopped("timeout_seconds", Usage(turns=3))
    assert budgets.used_up(run) == ["timeout_seconds"]
    assert budgets.used_up(run.model_copy(update={"budget": Budget(timeout_seconds=901)})) == []


def test_limits_are_raised_one_by_one_and_the_others_stay() -> None:
    run = a_run(Usage(turns=10), budget=Budget(max_cost_usd=3.0))
    assert budgets.raised(run, Budget(max_turns=60)) == Budget(max_turns=60, max_cost_usd=3.0)


def test_a_limit_as_it_is_may_be_asked_for_again() -> None:
    run = a_run(Usage(turns=10), budget=Budget(max_turns=60))
    assert budgets.raised(run, Budget(max_turns=60)) == run.budget


@pytest.mark.parametrize(
    ("run", "wanted", "message"),
    [
        (a_run(), {"max_turns": 47}, "must not be lower than it is now, 48"),
        (a_run(Usage(turns=48)), {"max_turns": 48}, "must be more than the 48 that are used"),
        (a_run(Usage(cost_usd=2.5)), {"max_cost_usd": 2.25}, "must be more than the 2.5 that are used"),
        (
            a_run(budget=Budget(max_total_tokens=2_000_000)),
            {"max_total_tokens": 1_000_000},
            "must not be lower than it is now, 2,000,000",
        ),
        (a_run(), {"max_total_tokens": 10**6}, "has no limit that could be raised"),
        (
            stopped("timeout_seconds", Usage()),
            {"timeout_seconds": 900},
            "must be more than the 900 that are used",
        ),
    ],
)
def test_a_limit_that_leaves_nothing_to_use_is_refused_by_name(run: Run, wanted: dict[str, Any], message: str) -> None:
    assert complaint(run, **wanted) == [{"field": next(iter(wanted)), "message": message}]


def test_everything_that_is_wrong_is_told_at_once() -> None:
    assert [detail["field"] for detail in complaint(a_run(), max_turns=1, timeout_seconds=1)] == [
        "max_turns",
        "timeout_seconds",
    ]


@pytest.mark.parametrize(
    ("run", "budget"),
    [
        (stopped("max_turns", Usage(turns=48)), Budget(max_turns=72)),
        (stopped("max_turns", Usage(turns=72), Budget(max_turns=72)), Budget(max_turns=96)),
        (stopped("max_cost_usd", Usage(turns=5, cost_usd=2.5)), Budget(max_cost_usd=4.5)),
        (stopped("timeout_seconds", Usage(turns=5)), Budget(timeout_seconds=1800)),
        (stopped("max_turns", Usage(turns=48, cost_usd=2.0)), Budget(max_turns=72, max_cost_usd=4.0)),
    ],
)
def test_continuing_adds_to_what_is_used_up_and_to_nothing_else(run: Run, budget: Budget) -> None:
    assert budgets.continued(run) == budget


def test_a_run_that_was_continued_is_left_as_it_is() -> None:
    run = stopped("max_turns", Usage(turns=48)).model_copy(update={"budget": Budget(max_turns=72)})
    assert budgets.continued(run) == run.budget


def test_a_run_that_has_not_used_up_anything_can_not_be_continued() -> None:
    with pytest.raises(Conflict):
        budgets.continued(a_run())


def test_there_is_an_end_to_continuing() -> None:
    with pytest.raises(Conflict, match="can't be raised any further"):
        budgets.continued(stopped("max_turns", Usage(turns=5_000), Budget(max_turns=5_000)))


def test_a_sandbox_that_does_not_say_which_limit_it_was_does_not_go_on_for_nothing() -> None:
    result = RunResult(outcome="suspended", suspend_reason="budget_exhausted")
    assert budgets.used_up(a_run(Usage(turns=3), result=result)) == ["max_turns"]
