"""The line of runs that wait for a slot of their owner, and waking those whose turn it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper.errors import Fenced

if TYPE_CHECKING:
    from sandpiper.ports import Slots, Workflow


@dataclass(frozen=True)
class Line:
    slots: Slots
    workflow: Workflow
    limit: int

    def join(self, owner: str, run_id: str, token: str) -> int:
        """The place in line; 0 is a slot."""
        return self.slots.acquire(owner, run_id, limit=self.limit, token=token)

    def leave(self, owner: str, run_id: str) -> None:
        """Give back a slot or a place, and tell those who hold a slot now."""
        for _, token in self.slots.release(owner, run_id, limit=self.limit):
            self._wake(token)

    def _wake(self, token: str) -> None:
        try:
            self.workflow.succeed(token, {"cancelled": False})
        except Fenced:
            # It knows already. If its execution is gone instead, `reconcile` ends the run and frees the slot.
            return
