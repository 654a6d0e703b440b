"""Whether what a suspended run waited for has come. Asked by whoever writes second: the person, or the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper.logic import budgets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sandpiper.models.run import ControlRequest, Run


def is_over(run: Run, unseen: Sequence[ControlRequest]) -> bool:
    """`unseen` is what came into the inbox after its sandbox had looked for the last time."""
    match run.suspend_reason:
        case "budget_exhausted":
            return not budgets.used_up(run)
        case "awaiting_approval":
            asked = run.result.approval if run.result else None
            return asked is not None and answer_to(asked.id, unseen) is not None
        case "awaiting_input":
            return any(request.action == "message" for request in unseen)
        case "awaiting_ci":
            return bool(run.result and run.result.ci) or _is_resumed(run, unseen)
        case _:
            return _is_resumed(run, unseen)


def answer_to(approval_id: str, requests: Iterable[ControlRequest]) -> ControlRequest | None:
    answers = (request for request in requests if request.action in {"approve", "reject"})
    return next((answer for answer in answers if answer.data.get("approval_id") == approval_id), None)


def open_pause(requests: Iterable[ControlRequest]) -> ControlRequest | None:
    """The wish to pause that no later wish to go on has taken back."""
    last = None
    for request in sorted(requests, key=lambda request: request.n):
        if request.action in {"pause", "resume"}:
            last = request
    return last if last and last.action == "pause" else None


def _is_resumed(run: Run, unseen: Sequence[ControlRequest]) -> bool:
    # A resumed run may suspend again before it has looked: the request that resumed it is no answer to that.
    resumes = [r for r in unseen if r.action == "resume" and r.data.get("attempt", run.attempt) == run.attempt]
    return bool(resumes) and open_pause(unseen) is None
