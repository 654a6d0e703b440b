"""The steps of the run state machine, each of which Step Functions may repeat.

| step | what can fail | what happens then |
|---|---|---|
| acquire_slot | a cancel arrives meanwhile | whoever is second sees the other's write and wakes the execution |
| prepare | its answer is lost | the status is `provisioning`: the repeat gives the same attempt again |
| suspend | a cancel, an answer, a raised budget arrives meanwhile | as in acquire_slot |
| recover | its answer is lost | the status is `queued`: the repeat only says "again" again |
| finalize | after the terminal write | the repeat finds the run ended and does the rest |

A sandbox that is lost costs one of MAX_ATTEMPTS; being suspended and resumed costs none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sandpiper import limits
from sandpiper.errors import Conflict, Fenced
from sandpiper.logic import budgets, statuses, suspension
from sandpiper.logic.artifacts import checkpoint_prefix, spec_key
from sandpiper.logic.line import NOT_IN_LINE
from sandpiper.logic.outcomes import (
    TIMEOUTS,
    UNANSWERED,
    Ending,
    Outcome,
    decide,
    stored_result,
    used_so_far,
    with_last_reply,
)
from sandpiper.models.events import NewEvent
from sandpiper.ports import Revision

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandpiper.logic.line import Line
    from sandpiper.models.quota import Scope
    from sandpiper.models.run import Run, RunResult
    from sandpiper.ports import Blobs, Clock, Runs, RunSecrets, Sandboxes, Workflow

Capacity = Literal["FARGATE", "FARGATE_SPOT"]


@dataclass(frozen=True)
class Prepared:
    cancelled: bool
    attempt: int
    token_timeout_seconds: int
    capacity: Capacity


@dataclass(frozen=True)
class Finalized:
    run: Run
    just_now: bool  # False: an earlier try of this step, or somebody else, has ended it


@dataclass(frozen=True)
class Steps:
    runs: Runs
    line: Line
    blobs: Blobs
    secrets: RunSecrets
    workflow: Workflow
    sandboxes: Sandboxes
    clock: Clock
    use_spot: bool = False
    tell_github: Callable[[str], None] | None = None  # that a run asked for there has come to where no sandbox tells

    def acquire_slot(self, run_id: str, token: str) -> None:
        """Answers on the token: at once, or when the run's turn has come or it is cancelled."""
        run = self._back_in_line(self.runs.get(run_id))
        if run.is_terminal or run.cancel_requested:
            self._answer(token, cancelled=True)
        elif scope := self.line.join(run, token):
            self._wait_in_line(run, token, scope)
        else:
            self._answer(token, cancelled=self._left_because_it_ended(run))

    def prepare(self, run_id: str) -> Prepared:
        run = self.runs.get(run_id)
        if not (run.is_terminal or run.cancel_requested) and run.status == "queued":
            run = self._dispatch(run)
        return Prepared(
            cancelled=run.is_terminal or run.cancel_requested,
            attempt=run.attempt,
            token_timeout_seconds=run.token_seconds or _token_seconds(run),
            capacity="FARGATE_SPOT" if self.use_spot and run.losses + 1 < limits.MAX_ATTEMPTS else "FARGATE",
        )

    def suspend(self, run_id: str, token: str, key: str) -> None:
        """Gives the slot back and keeps the token until somebody resumes or cancels the run, or has done so already."""
        run = self.runs.get(run_id)
        run = self._note_suspension(run, token, stored_result(self.blobs, run, key))
        self.sandboxes.stop_all(run_id, "the run is suspended")
        self.line.leave(run)
        self._tell(run)
        seen = run.result.inbox_seen if run.result else 0
        if run.cancel_requested:
            self._answer(token, cancelled=True)
        elif suspension.is_over(run, self.runs.controls(run_id, after=seen)):
            self._answer(token, cancelled=False)

    def recover(self, run_id: str, error: str, cause: str) -> bool:
        """Whether the run goes on in a new sandbox."""
        run = with_last_reply(self.runs, run_id)
        self.sandboxes.stop_all(run_id, "replaced by the next attempt")
        if run.status == "queued":
            return True
        if not self._may_go_on(run, error):
            return False
        data = {"error": error, "cause": cause, "attempt": run.attempt, "kept_turns": run.checkpoint_turn or 0}
        run = self.runs.change(
            run_id,
            allowed=("provisioning", "running"),
            changes={
                "status": "queued",
                "losses": run.losses + (error not in TIMEOUTS),
                "usage": run.usage,
                "approval": None,
            },
            events=[NewEvent(type="run_recovered", data=data)],
        )
        self._tell(run)
        return True

    def finalize(self, run_id: str, ending: Ending) -> Finalized:
        found = run = with_last_reply(self.runs, run_id)
        if not found.is_terminal:
            result = stored_result(self.blobs, run, ending.result_key) or run.result
            run = self._end(run, decide(run, ending, result), ending)
        self.line.leave(run)
        self.secrets.delete(run_id)
        self.sandboxes.stop_all(run_id, f"the run is {run.status}")
        self.blobs.delete_prefix(checkpoint_prefix(run_id))
        self._tell(run)
        return Finalized(run, just_now=not found.is_terminal)

    def _back_in_line(self, run: Run) -> Run:
        if run.status != "suspended" or run.cancel_requested:
            return run
        return self.runs.change(
            run.run_id,
            allowed=("suspended",),
            changes={"status": "queued", "suspend_reason": None, "resume_token": None},
            events=[NewEvent(type="run_resumed", data={"reason": run.suspend_reason})],
        )

    def _note_suspension(self, run: Run, token: str, result: RunResult | None) -> Run:
        reason = (result.suspend_reason if result else None) or "paused"
        data: dict[str, Any] = {"reason": reason}
        if result:
            approval_id = result.approval.id if result.approval else None
            data |= {"question": result.question, "exhausted": result.exhausted, "approval_id": approval_id}
        told = NewEvent(type="run_suspended", data={name: value for name, value in data.items() if value})
        return self.runs.change(
            run.run_id,
            allowed=(*statuses.before("suspended"), "suspended"),
            changes={
                "status": "suspended",
                "suspend_reason": reason,
                "resume_token": token,
                "result": result or run.result,
                "usage": used_so_far(run, result),
            },
            events=[] if run.status == "suspended" else [told],
        )

    def _wait_in_line(self, run: Run, token: str, scope: Scope) -> None:
        def wait(run: Run) -> Revision:
            if run.status != "queued":
                raise Conflict(f"Run {run.run_id} is {run.status}.")
            told = self.line.placed(run, scope) or Revision({})
            return Revision({**told.changes, "resume_token": token}, told.events)

        try:
            run = self.runs.revise(run.run_id, wait)
        except Conflict:
            # Its turn came in this very moment and it is on its way already, or it has been ended from outside.
            self._left_because_it_ended(run)
            return
        self._tell(run)
        if run.cancel_requested:
            self._answer(token, cancelled=True)

    def _left_because_it_ended(self, run: Run) -> bool:
        """Whoever ended the run gave back what it had by then, but not what it has joined since."""
        ended = self.runs.get(run.run_id).is_terminal
        if ended:
            self.line.leave(run)
        return ended

    def _dispatch(self, run: Run) -> Run:
        self.blobs.put(spec_key(run.run_id), run.spec.model_dump_json().encode(), content_type="application/json")
        return self.runs.change(
            run.run_id,
            allowed=("queued",),
            changes={
                "status": "provisioning",
                "attempt": run.attempt + 1,
                "token_seconds": _token_seconds(run),
                "budget": run.budget.model_copy(update={"month_usd": self.line.quotas.month_usd(run)}),
                **NOT_IN_LINE,
                "resume_token": None,
                "task_arn": None,
            },
            events=[NewEvent(type="run_dispatched", data={"attempt": run.attempt + 1})],
        )

    def _may_go_on(self, run: Run, error: str) -> bool:
        if run.is_terminal or run.cancel_requested:
            return False
        if error in TIMEOUTS:
            # It was given more time while it worked, of which the state machine's clock could know nothing.
            tries_are_left = run.token_seconds is not None and run.token_seconds < _token_seconds(run)
        else:
            tries_are_left = run.losses + 1 < limits.MAX_ATTEMPTS
        if not tries_are_left:
            return False
        handed_in = stored_result(self.blobs, run)
        return handed_in is None or handed_in.outcome == "suspended"

    def _end(self, run: Run, outcome: Outcome, ending: Ending) -> Run:
        changes: dict[str, Any] = {
            "status": outcome.status,
            "result": outcome.result,
            "usage": used_so_far(run, outcome.result),
            "error": outcome.error,
            "suspend_reason": None,
            "checkpoint_key": None,
            "checkpoint_turn": None,
            "resume_token": None,
            **NOT_IN_LINE,
            "approval": None,
            "ended_at": self.clock.now(),
        }
        try:
            return self.runs.change(
                run.run_id,
                allowed=statuses.LIVE,
                changes=changes,
                events=[*_expired(run, outcome), _end_event(outcome, ending)],
            )
        except Conflict:
            return self.runs.get(run.run_id)

    def _tell(self, run: Run) -> None:
        if self.tell_github and run.spec.github:
            self.tell_github(run.run_id)

    def _answer(self, token: str, *, cancelled: bool) -> None:
        try:
            self.workflow.succeed(token, {"cancelled": cancelled})
        except Fenced:
            # Somebody else has answered: a cancel, or an earlier try of this step.
            return


def _token_seconds(run: Run) -> int:
    """The outer clock of an attempt: longer than its working time, which the sandbox itself keeps."""
    worked = budgets.in_force(run.spec, run.budget).timeout_seconds or run.spec.timeout_seconds
    return limits.PROVISIONING_SECONDS + worked + limits.APPROVAL_WAITING_SECONDS + limits.FINISHING_SECONDS


def _expired(run: Run, outcome: Outcome) -> list[NewEvent]:
    """What nobody answered in all the time that a suspended run waits."""
    if run.approval is None or outcome.error is not UNANSWERED:
        return []
    return [NewEvent(type="approval_expired", data={"approval_id": run.approval.id})]


def _end_event(outcome: Outcome, ending: Ending) -> NewEvent:
    data: dict[str, Any] = {"summary": outcome.result.summary if outcome.result else ""}
    if outcome.error:
        data["error"] = outcome.error.model_dump()
    if outcome.result is None and ending.error:
        data["cause"] = {"error": ending.error, "cause": ending.cause or ""}
    return NewEvent(type=statuses.EVENT_OF_END[outcome.status], data=data)
