"""The lines of runs that wait for a slot: of their user first, then of their organization.

Who waits for the second holds the first. So nobody waits in a circle, and no user can fill the line of an organization
with more runs than may work at once. Both lines are in the order in which the runs were started, so a run that comes
back (resumed, or its sandbox was lost) stands before all that were started after it.

| what can fail | what happens then |
|---|---|
| whoever gives a slot back dies before the next run is told | the next release of the slots tells it, or `reconcile` |
| a run ends while it is called up | whoever called it gives the slot back; see `_call` |
| whoever tells the others their new places dies | they are told at the next move; the places themselves are right |
"""

from __future__ import annotations

import functools
import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandpiper import limits
from sandpiper.errors import Fenced, NotFound
from sandpiper.models.events import NewEvent
from sandpiper.ports import Revision

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sandpiper.logic.quotas import QuotaRules
    from sandpiper.models.quota import Quota, Scope
    from sandpiper.models.run import Run
    from sandpiper.ports import Runs, Slots, Workflow

NOT_IN_LINE: dict[str, Any] = {"queue_position": None, "queue_line": None, "estimated_wait_seconds": None}

type Estimate = Callable[[Run, int], int]  # in seconds, of a run at a place

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Line:
    runs: Runs
    slots: Slots
    workflow: Workflow
    quotas: QuotaRules

    def join(self, run: Run, token: str) -> Scope | None:
        """Whose slots the run waits for; None: it has all that it needs. Safe to repeat."""
        return self._join(run, run.scopes, token)

    def placed(self, run: Run, scope: Scope) -> Revision | None:
        """What becomes of a run that waits for a slot of `scope`; nothing if it does not any more, or has been told."""
        return self._placed(run, scope, self._estimate(scope))

    def leave(self, run: Run) -> None:
        """Give back slots or places, and tell those whose turn it is and those who have moved up."""
        for scope in reversed(run.scopes):
            self.move_up(scope, leaving=run.run_id)

    def move_up(self, scope: Scope, *, leaving: str | None = None) -> list[str]:
        """Hand on the slots that are free, or become so; returns the runs that were woken by it."""
        limit = self.quotas.concurrency(scope) or limits.MAX_CONCURRENCY
        before = self.slots.held(scope).waiting
        called = self.slots.release(scope, leaving, limit=limit)
        woken = [run_id for run_id, token in called if self._call(scope, run_id, token)]
        if before:
            self._tell_places(scope, before)
        return woken

    def set_limits(self, scope: Scope, quota: Quota) -> None:
        """New limits for a user or an organization; whoever has a slot by that is called up at once."""
        self.quotas.books.set_limits(scope, quota)
        self.move_up(scope)

    def _join(self, run: Run, scopes: Iterable[Scope], token: str) -> Scope | None:
        for scope in scopes:
            limit = self.quotas.concurrency(scope)
            if limit is None:
                continue
            if self.slots.acquire(scope, run.run_id, since=run.created_at, limit=limit, token=token):
                others = tuple(waiting for waiting in self.slots.held(scope).waiting if waiting != run.run_id)
                self._tell_places(scope, others)
                return scope
        return None

    def _call(self, scope: Scope, run_id: str, token: str) -> bool:
        """The run has a slot of `scope` now; it is woken if it needs no other, or gets that, too."""
        try:
            run = self.runs.get(run_id)
        except NotFound:
            logger.warning("a run without a row was called up", extra={"run_id": run_id})
            return False
        other = self._join(run, run.scopes[run.scopes.index(scope) + 1 :], token)
        if self.runs.get(run_id).is_terminal:
            # Whoever ended it gave back what it had by then, but not what it has joined since.
            self.leave(run)
        elif other is None:
            return self._wake(token)
        else:
            self.runs.revise(run_id, lambda run: self.placed(run, other))
        return False

    def _wake(self, token: str) -> bool:
        try:
            self.workflow.succeed(token, {"cancelled": False})
        except Fenced:
            # It knows already. If its execution is gone instead, `reconcile` ends the run and frees the slot.
            return False
        return True

    def _tell_places(self, scope: Scope, before: tuple[str, ...]) -> None:
        """Those who stand elsewhere than before: further on, or behind somebody who was started earlier."""
        waiting = self.slots.held(scope).waiting[: limits.TOLD_IN_LINE]
        estimate = self._estimate(scope)
        for place, run_id in enumerate(waiting):
            if before[place : place + 1] != (run_id,):
                self._tell(run_id, scope, estimate)

    def _tell(self, run_id: str, scope: Scope, estimate: Estimate) -> None:
        def moved(run: Run) -> Revision | None:
            return self._placed(run, scope, estimate) if run.queue_line == scope.kind else None

        try:
            self.runs.revise(run_id, moved)
        except NotFound:
            logger.warning("a run without a row waits in line", extra={"run_id": run_id})

    def _placed(self, run: Run, scope: Scope, estimate: Estimate) -> Revision | None:
        """Several tell one run: whoever has read its row last has seen the line last, and no other's word is taken."""
        waiting = self.slots.held(scope).waiting
        position = waiting.index(run.run_id) + 1 if run.run_id in waiting else None
        if run.status != "queued" or position is None or (run.queue_position, run.queue_line) == (position, scope.kind):
            return None
        seconds = estimate(run, position)
        changes = {"queue_position": position, "queue_line": scope.kind, "estimated_wait_seconds": seconds}
        data = {"position": position, "line": scope.kind, "estimated_wait_seconds": seconds}
        return Revision(changes, [NewEvent(type="run_slot_waiting", data=data)])

    def _estimate(self, scope: Scope) -> Estimate:
        limit = self.quotas.concurrency(scope) or limits.MAX_CONCURRENCY
        recent = functools.cache(self._recent)  # most of those who wait have one owner
        return lambda run, position: estimated_wait(run, recent(run.owner), position, limit)

    def _recent(self, owner: str) -> tuple[Run, ...]:
        page = self.runs.list_by_owner(owner, status="completed", repo=None, limit=limits.TYPICAL_RUNS, cursor=None)
        return page.items


def estimated_wait(run: Run, recent: Iterable[Run], position: int, limit: int) -> int:
    """As many rounds as it takes, each as long as the owner's runs usually are, or as long as one may be."""
    spans = (past.ended_at - past.started_at for past in recent if past.ended_at and past.started_at)
    times = sorted(span.total_seconds() for span in spans)
    typical = times[len(times) // 2] if times else run.spec.timeout_seconds
    return math.ceil(math.ceil(position / limit) * typical)
