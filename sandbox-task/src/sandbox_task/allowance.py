"""What a run may use: its spec's limits, as people have raised them meanwhile, and the time it has worked so far."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from sandpiper import limits
from sandpiper.logic import budgets
from sandpiper.models.run import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandpiper.models.run import LimitName, Usage
    from sandpiper.models.spec import RunSpec


class Exceeded(NamedTuple):
    limit: LimitName
    words: str


class Allowance:
    """Every limit of a run, checked in this one place before each call of the model."""

    def __init__(
        self, spec: RunSpec, *, seconds_before: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spec, self._clock = spec, clock
        self._started = clock() - seconds_before
        self._raised = Budget()
        self._still_since: float | None = None

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Time that is spent waiting for a person is not working time."""
        self._still_since = self._clock()
        try:
            yield
        finally:
            waited, self._still_since = self._clock() - self._still_since, None
            self._started += waited

    def raise_to(self, budget: Budget) -> None:
        self._raised = budget

    @property
    def in_force(self) -> Budget:
        return budgets.in_force(self._spec, self._raised)

    @property
    def timeout_seconds(self) -> int:
        return self.in_force.timeout_seconds or self._spec.timeout_seconds

    @property
    def seconds_used(self) -> float:
        still = self._still_since
        return (self._clock() if still is None else still) - self._started

    def time_is_up(self) -> bool:
        return self.seconds_used >= self.timeout_seconds

    def exceeded(self, usage: Usage) -> Exceeded | None:
        """The limit that forbids another turn."""
        limit = self.in_force
        if limit.max_turns is not None and usage.turns >= limit.max_turns:
            return Exceeded("max_turns", f"The agent used all of its {limit.max_turns} turns.")
        if limit.max_cost_usd is not None and usage.cost_usd >= limit.max_cost_usd:
            words = f"The run has cost ${usage.cost_usd:.2f}, and its budget is ${limit.max_cost_usd:.2f}."
            return Exceeded("max_cost_usd", words)
        if limit.max_total_tokens is not None and usage.total_tokens >= limit.max_total_tokens:
            words = f"The run has used {usage.total_tokens:,} tokens, and its budget is {limit.max_total_tokens:,}."
            return Exceeded("max_total_tokens", words)
        if self.seconds_used > self.timeout_seconds - limits.LAST_CALL_SECONDS:
            return Exceeded("timeout_seconds", f"The run's {self.timeout_seconds} seconds are used up.")
        return None
