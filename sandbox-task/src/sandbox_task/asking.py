"""Puts a request for approval where people find it: on the run, with the event that tells of it in the same write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandpiper import limits
from sandpiper.errors import Conflict, Fenced
from sandpiper.models.events import NewEvent
from sandpiper.models.run import ApprovalRequest

if TYPE_CHECKING:
    from sandbox_task.redaction import Redactor
    from sandbox_task.reporter import Reporter
    from sandpiper.ports import Runs

_IN_LOG = "… {more:,} more characters, which only the log has"
_IN_RUN = "… {more:,} more characters: see `approval` of the run"


@dataclass(frozen=True)
class Asking:
    runs: Runs
    run_id: str
    attempt: int
    reporter: Reporter
    redactor: Redactor

    def __call__(self, request: ApprovalRequest, call_id: str) -> ApprovalRequest:
        """The request as it is on the run: one that an earlier attempt has made is not told again. Raises Fenced."""
        known = self.runs.get(self.run_id).approval
        if known and known.id == request.id:
            return known
        whole = ApprovalRequest.model_validate(self.redactor.data(request.model_dump(mode="json")))
        self.reporter.note(f"approval requested: {whole.model_dump_json()}")
        self.reporter.flush()
        clean = whole.model_copy(update={"shown": _cut(whole.shown, limits.APPROVAL_SHOWN_CHARS, _IN_LOG)})
        event = NewEvent(type="approval_requested", data=_told(whole, call_id))
        try:
            self.runs.change(
                self.run_id, allowed=("running",), changes={"approval": clean}, events=[event], attempt=self.attempt
            )
        except Conflict as error:
            raise Fenced(error.message) from error
        for observe in self.reporter.observers:  # the event was written with the row, past the reporter
            observe(event.type, event.data)
        return clean


def _told(request: ApprovalRequest, call_id: str) -> dict[str, Any]:
    about = request.model_dump(mode="json", include={"tool", "reason", "risk", "kind"})
    return {
        **_cut(request.shown, limits.APPROVAL_TOLD_CHARS, _IN_RUN),
        **about,
        "approval_id": request.id,
        "call": call_id,
    }


def _cut(shown: dict[str, Any], room: int, words: str) -> dict[str, Any]:
    return {
        name: value[:room] + words.format(more=len(value) - room)
        if isinstance(value, str) and len(value) > room
        else value
        for name, value in shown.items()
    }
