"""The limits of a run: which are in force, which are used up, and how far people may raise them."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from sandpiper import limits
from sandpiper.errors import Conflict, ValidationError
from sandpiper.models.run import Budget, LimitName

if TYPE_CHECKING:
    from sandpiper.models.run import Run
    from sandpiper.models.spec import RunSpec

NAMES: tuple[LimitName, ...] = get_args(LimitName)
_CEILINGS: dict[LimitName, float] = {
    "max_turns": limits.MAX_RAISED_TURNS,
    "max_cost_usd": limits.MAX_RAISED_COST_USD,
    "max_total_tokens": limits.MAX_RAISED_TOTAL_TOKENS,
    "timeout_seconds": limits.MAX_RAISED_TIMEOUT_SECONDS,
}


def in_force(spec: RunSpec, budget: Budget) -> Budget:
    """Every limit as it is now; None is no limit."""
    own = _of_the_run(spec, budget)
    dollars = [limit for limit in (own.max_cost_usd, budget.month_usd) if limit is not None]
    return own.model_copy(update={"max_cost_usd": min(dollars, default=None)})


def used_up(run: Run) -> list[LimitName]:
    """The limits that stand in the way of another turn."""
    now = in_force(run.spec, run.budget)
    return [name for name in NAMES if (limit := _given(now, name)) is not None and limit <= _spent(run, name)]


def raised(run: Run, wanted: Budget) -> Budget:
    """The budget with these limits, each of which must leave something to use. Raises ValidationError."""
    given = {name: value for name in NAMES if (value := _given(wanted, name)) is not None}
    complaints = {name: _complaint(run, name, value) for name, value in given.items()}
    details = [{"field": name, "message": complaint} for name, complaint in complaints.items() if complaint]
    if details:
        raise ValidationError(f"{details[0]['field']} {details[0]['message']}.", details=details)
    return _with(run, given)


def continued(run: Run) -> Budget:
    """The budget with more of what is used up; as it is for a run that was continued already. Raises Conflict."""
    if run.result is None or run.result.suspend_reason != "budget_exhausted":
        raise Conflict(f"Run {run.run_id} has not used up its budget. Name the limits that you want to raise.")
    own = _of_the_run(run.spec, run.budget)
    return _with(run, {name: _more(run, name) for name in used_up(run) if _given(own, name) is not None})


def _of_the_run(spec: RunSpec, budget: Budget) -> Budget:
    """Without what the month's quota leaves, which nobody raises here."""
    return Budget.model_validate({name: _given(budget, name) or getattr(spec, name) for name in NAMES})


def _with(run: Run, new: dict[LimitName, float]) -> Budget:
    return Budget.model_validate({**run.budget.model_dump(), **new})


def _more(run: Run, name: LimitName) -> float:
    amount = limits.CONTINUE_TURNS if name == "max_turns" else getattr(run.spec, name)
    spent = _spent(run, name)
    more = min(spent + amount, _CEILINGS[name])
    if more <= spent:
        raise Conflict(f"Run {run.run_id} has used up its {name}, which can't be raised any further.")
    return float(more)


def _complaint(run: Run, name: LimitName, value: float) -> str | None:
    limit, spent = _given(_of_the_run(run.spec, run.budget), name), _spent(run, name)
    if limit is None:
        return "has no limit that could be raised"
    if value < limit:
        return f"must not be lower than it is now, {round(limit, 4):,}"
    return f"must be more than the {round(spent, 4):,} that are used" if value <= spent else None


def _spent(run: Run, name: LimitName) -> float:
    """By the run's books, and by the word of a sandbox that stopped because of this limit.

    Working time is in no book, and only the sandbox knows that it is over.
    """
    usage, result = run.usage, run.result
    booked: dict[str, float] = {
        "max_turns": usage.turns,
        "max_cost_usd": usage.cost_usd,
        "max_total_tokens": usage.total_tokens,
    }
    if result is None or result.suspend_reason != "budget_exhausted" or name != (result.exhausted or "max_turns"):
        return booked.get(name, 0)
    stopped_at = _given(result.limits or in_force(run.spec, Budget()), name)
    return max(booked.get(name, 0), stopped_at or 0)


def _given(budget: Budget, name: LimitName) -> float | None:
    value: float | None = getattr(budget, name)
    return value
