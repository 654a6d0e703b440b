"""What people may ask of a run that is under way.

One mechanism for all: the wish is written first (on the run row or in its inbox), then the run is woken if it waits for
it. A wish that comes while the run is being suspended finds no token yet; `Steps.suspend`, which writes after it, sees
the wish and goes on by itself. Whoever is second sees the other's write, and a token is answered once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sandpiper.errors import Conflict, Fenced, NotFound
from sandpiper.logic import budgets, statuses, suspension
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
class Answer:
    """To a request for approval. With the scope `run` the same kind of risk is not asked about again."""

    decision: Literal["approve", "reject"]
    note: str | None = None
    scope: Literal["call", "run"] = "call"

    def data(self, approval_id: str, kind: str) -> dict[str, str]:
        given = {"approval_id": approval_id, "decision": self.decision, "scope": self.scope, "kind": kind}
        return given | ({"note": self.note} if self.note else {})


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

    def answer(self, run_id: str, approval_id: str, answer: Answer, identity: Identity) -> Run:
        """Approve or reject what the run has asked for. Raises NotFound, Conflict for a second, other answer."""
        run = own_run(self.runs, run_id, identity)
        if known := suspension.answer_to(approval_id, self.runs.controls(run_id, after=0)):
            _refuse_another(known, answer.data(approval_id, str(known.data.get("kind"))))
        else:
            self._store_answer(run, approval_id, answer, identity)
        run = self.runs.get(run_id)
        asked = run.result.approval if run.result else None
        if run.suspend_reason == "awaiting_approval" and asked and asked.id == approval_id:
            self._wake(run)
        return run

    def pause(self, run_id: str, identity: Identity, *, now: bool = False) -> Run:
        """A run at work is suspended after the command in hand, or in the middle of it. Raises NotFound, Conflict."""
        run = own_run(self.runs, run_id, identity)
        _refuse_ended(run)
        if run.status == "suspended":
            return run
        if run.status == "queued":
            raise Conflict(f"Run {run_id} waits in line: there is nothing to pause yet.")
        resumed = max((request.n for request in self._inbox(run) if request.action == "resume"), default=0)
        self.runs.put_control(
            run_id,
            {"action": "pause", "by": identity.user, "data": {"now": now}},
            allowed=("provisioning", "running"),
            key=f"pause:{resumed}:{now}",
        )
        return self.runs.get(run_id)

    def resume(self, run_id: str, identity: Identity) -> Run:
        """A paused run goes on, and a pause that has not come about yet is taken back. Raises NotFound, Conflict."""
        run = own_run(self.runs, run_id, identity)
        _refuse_ended(run)
        if run.status != "suspended":
            return self._take_back_pause(run, identity)
        if instead := _INSTEAD.get(run.suspend_reason or ""):
            raise Conflict(f"Run {run_id} {instead}.")
        request = {"action": "resume", "by": identity.user, "data": {"attempt": run.attempt}}
        self.runs.put_control(run_id, request, key=f"resume:{run.attempt}")
        run = self.runs.get(run_id)
        self._wake(run)
        return run

    def ci_completed(self, run_id: str, *, key: str) -> bool:
        """A run that waits for CI looks at it. Whether there was one; the same `key` wakes it once."""
        run = self.runs.get(run_id)
        waits = run.status != "suspended" or str(run.suspend_reason) == "awaiting_ci"
        if run.is_terminal or not waits or suspension.open_pause(self._inbox(run)):
            return False
        # Also before it has been suspended: `Steps.suspend` finds the request.
        request = {"action": "resume", "by": "github", "data": {"attempt": run.attempt}}
        self.runs.put_control(run_id, request, key=f"ci:{key}")
        self._wake(self.runs.get(run_id))
        return True

    def _store_answer(self, run: Run, approval_id: str, answer: Answer, identity: Identity) -> None:
        _refuse_ended(run)
        if run.approval is None or run.approval.id != approval_id:
            raise NotFound(f"Run {run.run_id} has not asked for an approval {approval_id}.")
        self.runs.put_control(
            run.run_id,
            {"action": answer.decision, "by": identity.user, "data": answer.data(approval_id, run.approval.kind)},
            allowed=statuses.LIVE,
            event="approval_resolved",
            key=f"approval:{approval_id}",
            changes={"approval": None},
        )

    def _take_back_pause(self, run: Run, identity: Identity) -> Run:
        pause = suspension.open_pause(self._inbox(run))
        if pause is None:
            return run
        request = {"action": "resume", "by": identity.user, "data": {"attempt": run.attempt}}
        self.runs.put_control(run.run_id, request, key=f"resume:{run.attempt}:{pause.n}")
        run = self.runs.get(run.run_id)
        if run.suspend_reason == "paused":
            self._wake(run)
        return run

    def _inbox(self, run: Run) -> list[ControlRequest]:
        return self.runs.controls(run.run_id, after=0)

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


def _refuse_another(known: ControlRequest, wanted: dict[str, str]) -> None:
    if known.data != wanted:
        raise Conflict(f"This was answered already, by {known.by}: {known.data.get('decision')}.")


def _seen(run: Run) -> int:
    return run.result.inbox_seen if run.result else 0


def _refuse_ended(run: Run) -> None:
    if run.is_terminal:
        raise Conflict(f"Run {run.run_id} has ended already: {run.status}.")
