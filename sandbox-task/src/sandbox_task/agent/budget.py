"""Every limit of a run, checked in this one place before each call of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandpiper.models.run import Usage


@dataclass(frozen=True)
class Budget:
    max_turns: int
    max_cost_usd: float | None = None

    def exceeded(self, usage: Usage) -> str | None:
        """Which limit forbids another turn, in words."""
        if usage.turns >= self.max_turns:
            return f"The agent used all of its {self.max_turns} turns."
        if self.max_cost_usd is not None and usage.cost_usd >= self.max_cost_usd:
            return f"The run has cost ${usage.cost_usd:.2f}, and its budget is ${self.max_cost_usd:.2f}."
        return None
