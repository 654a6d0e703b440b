"""What a tool takes and what comes of it."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from sandbox_task.isolation.wall import Completed


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Outcome:
    """What the model is told, what the event says beside it, and the path of the file that was read or written.

    `was_broken_off`: it did not come to its end by itself.
    """

    content: str
    data: dict[str, Any] = field(default_factory=dict)
    path: str | None = None
    succeeded: bool = True
    was_broken_off: bool = False


class ToolError(Exception):
    """The tool could not do it; the message is for the model."""


def ending_in_words(completed: Completed) -> str:
    match completed.ended_by:
        case "timeout":
            return f"killed after {completed.duration_ms / 1000:.0f} s, its timeout, with everything it had started"
        case "interrupt":
            return "stopped, with everything it had started"
        case "wall_lost":
            return "ended, because it killed the sandbox's own process that ran it"
        case "itself":
            code = completed.exit_code or 0
            return f"exit code {code}" if code >= 0 else f"killed by {_signal(-code)}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
