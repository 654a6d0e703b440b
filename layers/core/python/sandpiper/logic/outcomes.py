"""How a run ended, from what is known when nothing more will happen to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sandpiper.errors import NotFound
from sandpiper.logic.artifacts import result_key
from sandpiper.models.run import ErrorInfo, Run, RunResult, Usage

if TYPE_CHECKING:
    from sandpiper.models.run import Status
    from sandpiper.ports import Blobs, Runs

EndStatus = Literal["failed", "cancelled", "timed_out"]
TIMEOUTS = frozenset({"States.Timeout", "TIMED_OUT"})
CANCELLED = ErrorInfo(type="cancelled", message="The run was cancelled.")
TIMED_OUT = ErrorInfo(type="timeout", message="The run took longer than it was given.")
UNANSWERED = ErrorInfo(type="cancelled", message="The run waited too long for somebody to let it go on.")
LOST = ErrorInfo(
    type="sandbox_lost", message="The sandbox stopped answering and the run could not go on.", retryable=True
)
_ERROR_OF_STATUS: dict[Status, ErrorInfo] = {"cancelled": CANCELLED, "timed_out": TIMED_OUT}


@dataclass(frozen=True)
class Ending:
    """What the workflow knows when it comes to the end."""

    result_key: str | None = None
    error: str | None = None
    cause: str | None = None
    cancelled: bool = False


@dataclass(frozen=True)
class Outcome:
    status: Status
    error: ErrorInfo | None = None
    result: RunResult | None = None


def decide(run: Run, ending: Ending, result: RunResult | None) -> Outcome:
    """A sandbox's own word comes first: it knows what it has pushed. What a suspended one had done by then is kept."""
    if result is not None and result.outcome != "suspended":
        return Outcome(result.outcome, result.error or _ERROR_OF_STATUS.get(result.outcome), result)
    status, error = _without_a_word(run, ending)
    nothing_asked = {"suspend_reason": None, "question": None, "approval": None}
    kept = result and result.model_copy(update={"outcome": status, **nothing_asked})
    return Outcome(status, error, kept)


def with_last_reply(runs: Runs, run_id: str) -> Run:
    """A lost sandbox may have stored a reply that the row does not count yet: it is kept, and it was paid for."""
    run, reply = runs.get(run_id), runs.last_reply(run_id)
    if reply is None or reply.after != run.checkpoint_key:
        return run
    return run.model_copy(update={"usage": run.usage.at_least(reply.usage), "checkpoint_turn": reply.usage.turns})


def used_so_far(run: Run, result: RunResult | None) -> Usage:
    """What a result says of all attempts, unless it knows less than the row."""
    return result.usage if result and result.usage.turns >= run.usage.turns else run.usage


def _without_a_word(run: Run, ending: Ending) -> tuple[EndStatus, ErrorInfo]:
    if ending.cancelled or run.cancel_requested:
        return "cancelled", CANCELLED
    if ending.error not in TIMEOUTS:
        return "failed", LOST
    return ("cancelled", UNANSWERED) if run.status == "suspended" else ("timed_out", TIMED_OUT)


def stored_result(blobs: Blobs, run: Run, key: str | None = None) -> RunResult | None:
    """What the current attempt has handed in, even if its sandbox died before it could say so."""
    try:
        return RunResult.model_validate_json(blobs.get(key or result_key(run.run_id, run.attempt)))
    except NotFound:
        return None
