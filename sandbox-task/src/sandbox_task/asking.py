"""Puts a request for approval where people find it: on the run, with the event that tells of it in the same write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandpiper.errors import Conflict, Fenced
from sandpiper.models.events import NewEvent
from sandpiper.models.run import ApprovalRequest

if TYPE_CHECKING:
    from sandbox_task.redaction import Redactor
    from sandbox_task.reporter import Reporter
    from sandpiper.ports import Runs


@dataclass(frozen=True)
class Asking:
    runs: Runs
    run_id: str
    attempt: int
    reporter: Reporter
    redactor: Redactor

    def __call__(self, request: ApprovalRequest, told: dict[str, Any]) -> ApprovalRequest:
        """The request as it is on the run: one that an earlier attempt has made is not told again. Raises Fenced."""
        known = self.runs.get(self.run_id).approval
        if known and known.id == request.id:
            return known
        clean = ApprovalRequest.model_validate(self.redactor.data(request.model_dump(mode="json")))
        event = NewEvent(type="approval_requested", data=self.redactor.data(told))
        self.reporter.note(f"approval requested: {clean.id}: {clean.reason} {clean.shown}")
        self.reporter.flush()
        try:
            self.runs.change(
                self.run_id, allowed=("running",), changes={"approval": clean}, events=[event], attempt=self.attempt
            )
        except Conflict as error:
            raise Fenced(error.message) from error
        return clean
