"""How a run ended, from what is known when nothing more will happen to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper.errors import NotFound
from sandpiper.logic.artifacts import result_key
from sandpiper.models.run import ErrorInfo, Run, RunResult

if TYPE_CHECKING:
    from sandpiper.models.run import Status
    from sandpiper.ports import Blobs

TIMEOUTS = frozenset({"States.Timeout", "TIMED_OUT"})
CANCELLED = ErrorInfo(type="cancelled", message="The run was cancelled.")
TIMED_OUT = ErrorInfo(type="timeout", message="The run took longer than it was given.")
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
    """A sandbox's own word comes first: it knows what it has pushed."""
    if result is not None and result.outcome != "suspended":
        return Outcome(result.outcome, result.error or _ERROR_OF_STATUS.get(result.outcome), result)
    if ending.cancelled or run.cancel_requested:
        return Outcome("cancelled", CANCELLED, result)
    if ending.error in TIMEOUTS:
        return Outcome("timed_out", TIMED_OUT, result)
    return Outcome("failed", LOST, result)


def stored_result(blobs: Blobs, run: Run, key: str | None = None) -> RunResult | None:
    """What the current attempt has handed in, even if its sandbox died before it could say so."""
    try:
        return RunResult.model_validate_json(blobs.get(key or result_key(run.run_id, run.attempt)))
    except NotFound:
        return None
