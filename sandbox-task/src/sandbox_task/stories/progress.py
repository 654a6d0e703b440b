"""`progress.txt`: one line for each time that a story was worked on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from datetime import datetime

    from sandpiper.models.run import GateReport, StoryOutcome

FILE = "progress.txt"


def progress_line(outcome: StoryOutcome, gate: GateReport, task: str, now: datetime) -> str:
    """One line, whatever the story and the task contain, and ` :: ` only between its parts."""
    time = now.isoformat(timespec="seconds").replace("+00:00", "Z")
    story = " ".join(filter(None, (_flat(outcome.id), _flat(outcome.title))))
    parts = (f"[{time}] {story}", outcome.verdict, _flat(gate.summary), f"Task: {_flat(task)}")
    return " :: ".join(parts)


def appended(before: bytes, line: str) -> bytes:
    """With the file's own line ending, and on a line of its own."""
    end = b"\r\n" if b"\r\n" in before else b"\n"
    mended = before if not before or before.endswith(b"\n") else before + end
    return mended + line.encode(errors="replace") + end


def _flat(text: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(printable.replace("::", ":").split())[: limits.PROGRESS_TASK_CHARS]
