"""What people may ask of a run that is under way.

One mechanism for all: the wish is written first (on the run row or in its inbox), then the run is woken if it waits for
it. A wish that comes while the run is being suspended finds no token yet; `Steps.suspend`, which writes after it, sees
the wish and goes on by itself. Whoever is second sees the other's write, and a token is answered once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandpiper.errors import Conflict, Fenced
from sandpiper.logic import budgets, statuses
from sandpiper.logic.access import own_run
from sandpiper.models.events import NewEvent
from sandpiper.models.run import Budget
from sandpiper.ports import Revision

if TYPE_CHECKING:
    from sandpiper.models.identity import Identity
    from sandpiper.models.run import ControlRequest, Run
    from sandpiper.ports import Clock, Runs, Workflow

_INSTEAD = {
    "awaiting_input": "waits for an answer: send it a message",
    "awaiting_approval": "waits for an approval: approve or reject it",
    "budget_exhausted": "has used up its budget: raise it",
}


@dataclass(frozen=True)
class Controls:
    runs: Runs
    workflow: Workflow
    clock: Clock

    def cancel(self, run_id: str, identity: Identity) -> Run:
        """The run with the wish noted, or as it is if it has been cancelled already. Raises NotFound, Conflict."""
        run = own_run(self.runs, run_id, identity)
        if run.status == "cancelled":
            return run
        if not run.cancel_requested:
            run = self._request_cancel(run, identity)
        self._wake(run, cancelled=True)
        return run

    def grant(self, run_id: str, wanted: Budget, identity: Identity) -> Run:
        """Raise limits; with none, "continue". Raises NotFound, ValidationError, Conflict. Safe to repeat."""
        own_run(self.runs, run_id, identity)
        run = self.runs.revise(run_id, lambda run: _granted(run, wanted, identity.user))
        if run.suspend_reason == "budget_exhausted" and not budgets.used_up(run):
            self._wake(run)
        return run

    def say(self, run_id: str, text: str, identity: Identity, *, key: str | None = None) -> tuple[ControlRequest, Run]:
        """Leave words for the agent; the same `key` leaves them once. Raises NotFound, Conflict."""
        own_run(self.runs, run_id, identity)
        message = self.runs.put_control(
            run_id,
            {"action": "message", "by": identity.user, "data": {"text": text}},
            allowed=statuses.LIVE,
            event="run_message_received",
            key=f"message:{key}" if key else None,
        )
        run = self.runs.get(run_id)
        if run.suspend_reason == "awaiting_input" and message.n > _seen(run):
            self._wake(run)
        return message, run

    def resume(self, run_id: str, identity: Identity) -> Run:
        """A paused run goes on; one that runs is left as it is. Raises NotFound, Conflict. Safe to repeat."""
        run = own_run(self.runs, run_id, identity)
        _refuse_ended(run)
        if run.status != "suspended":
            return run
        if instead := _INSTEAD.get(run.suspend_reason or ""):
            raise Conflict(f"Run {run_id} {instead}.")
        request = {"action": "resume", "by": identity.user, "data": {"attempt": run.attempt}}
        self.runs.put_control(run_id, request, key=f"resume:{run.attempt}")
        run = self.runs.get(run_id)
        self._wake(run)
        return run

    def _request_cancel(self, run: Run, identity: Identity) -> Run:
        _refuse_ended(run)
        # The row first: who reads `resume_token` after this write, or writes it, sees the wish.
        run = self.runs.change(run.run_id, allowed=statuses.LIVE, changes={"cancel_requested": True})
        now = self.clock.now()
        self.runs.put_control(run.run_id, {"action": "cancel", "by": identity.user, "at": now, "data": {}})
        return run

    def _wake(self, run: Run, *, cancelled: bool = False) -> None:
        # A run in line has a token, too, but only a slot may wake it, or the wish to cancel it.
        if run.resume_token is None or not (cancelled or run.status == "suspended"):
            return
        try:
            self.workflow.succeed(run.resume_token, {"cancelled": cancelled})
        except Fenced:
            # It has been woken by somebody else; the next step of the workflow looks at the row.
            return


def _granted(run: Run, wanted: Budget, by: str) -> Revision | None:
    _refuse_ended(run)
    budget = budgets.continued(run) if wanted == Budget() else budgets.raised(run, wanted)
    if budget == run.budget:
        return None
    before, after = (budgets.in_force(run.spec, limits).model_dump() for limits in (run.budget, budget))
    changed = [name for name in budgets.NAMES if before[name] != after[name]]
    data: dict[str, Any] = {
        "by": by,
        "old": {name: before[name] for name in changed},
        "new": {name: after[name] for name in changed},
    }
    return Revision({"budget": budget}, [NewEvent(type="agent_budget_extended", data=data)])


def _seen(run: Run) -> int:
    return run.result.inbox_seen if run.result else 0


def _refuse_ended(run: Run) -> None:
    if run.is_terminal:
        raise Conflict(f"Run {run.run_id} has ended already: {run.status}.")
