"""The complete log of a run: every event in words, every command with all of its output, nothing cut.

A line of ours begins with `#` and the number of its event (`#?` if it never got one), or with `-` (a note). Everything
that others have written is indented, what commands print stands behind `  | `, and characters that would move a cursor
are shown as pictures: nothing that a command prints can pass for a line of ours.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sandbox_task.log_words import harmless, in_words
from sandbox_task.results import TEXT
from sandpiper import limits
from sandpiper.logic import log_parts
from sandpiper.logic.log_parts import LogPart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandpiper.ports import Blobs

QUOTE = "  | "
_RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
_CLOSE_SECONDS = 30.0


@dataclass
class Entry:
    """A piece of the log. An event waits for its number, and what was said after it waits, too."""

    text: str
    is_event: bool = False
    seq: int | None = None

    @property
    def is_settled(self) -> bool:
        return not self.is_event or self.seq is not None

    def __str__(self) -> str:
        return f"#{self.seq or '?'} {self.text}" if self.is_event else self.text


@dataclass
class _Part:
    """What is stored next."""

    pieces: list[bytes] = field(default_factory=list)
    size: int = 0
    seqs: list[int] = field(default_factory=list)

    def add(self, entry: Entry, before: str) -> None:
        piece = f"{before}{entry}".encode(errors="replace")
        self.pieces.append(piece)
        self.size += len(piece)
        if entry.seq is not None:
            self.seqs.append(entry.seq)


class LogFile:
    """Leaves the sandbox part by part, as it grows. Takes text that has been redacted already."""

    def __init__(self, blobs: Blobs, run_id: str, attempt: int) -> None:
        self._blobs, self._run_id, self._attempt = blobs, run_id, attempt
        self._changed = threading.Condition()
        self._waiting: deque[tuple[str, Entry]] = deque()
        self._held = 0
        self._part = _Part()
        self._numbers = itertools.count(1)
        self._open: Quoted | None = None
        self._closing = threading.Event()
        self._given_up_at = math.inf
        self._failure: Exception | None = None
        self._keeper = threading.Thread(target=self._keep, name="log", daemon=True)
        self._keeper.start()

    def event(self, type_: str, data: Mapping[str, Any]) -> Entry:
        """To be given its number when the event is stored."""
        entry = Entry(f"[{_now()}] {type_}{in_words(data)}\n", is_event=True)
        self._write(entry, None)
        return entry

    def number(self, entry: Entry, seq: int) -> None:
        with self._changed:
            entry.seq = seq
            self._settle()

    def note(self, text: str) -> None:
        self._write(Entry(f"- [{_now()}] note{in_words({'text': text})}\n"), None)

    def quoted(self) -> Quoted:
        """Where the output of one command goes."""
        return Quoted(self)

    def quote(self, source: Quoted, text: str) -> None:
        """Waits if the store takes less than commands print: memory is not for logs."""
        with self._changed:
            self._changed.wait_for(self._has_room, limits.LOG_WAIT_SECONDS)
        if text:
            self._write(Entry(_behind_quotes(text)), source)

    def close(self) -> None:
        """Stores what is left. Raises what the store raised, if it takes no more."""
        with self._changed:
            self._given_up_at = time.monotonic() + _CLOSE_SECONDS
            self._closing.set()
            self._settle()
        self._keeper.join()
        if self._failure is not None:
            raise self._failure

    def store_whole(self, key: str) -> int:
        """All attempts together as one plain text, for who wants it by one link; returns its size."""
        return self._blobs.put_stream(key, log_parts.whole(self._blobs, self._run_id), content_type=TEXT)

    def _write(self, entry: Entry, source: Quoted | None) -> None:
        with self._changed:
            if self._closing.is_set():
                return
            self._waiting.append((self._line_end(source), entry))
            self._held += len(entry.text)
            self._open = None if entry.text.endswith("\n") else source
            self._settle()

    def _line_end(self, source: Quoted | None) -> str:
        """What stands between the piece before and this one: a line is gone on with by its own command only."""
        if source is not None and self._open is source:
            return ""
        return ("\n" if self._open else "") + (QUOTE if source else "")

    def _settle(self) -> None:
        hurry = self._closing.is_set() or self._held > limits.LOG_HELD_CHARS
        while self._waiting and (hurry or self._waiting[0][1].is_settled):
            before, entry = self._waiting.popleft()
            self._held -= len(entry.text)
            self._part.add(entry, before)
        if hurry or self._part.size >= limits.LOG_PART_BYTES:
            self._changed.notify_all()

    def _keep(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._is_urgent, limits.LOG_PART_SECONDS)
                part, self._part = self._part, _Part()
                self._changed.notify_all()
            if part.size and not self._store(part):
                return
            if self._closing.is_set() and not self._part.size:
                return

    def _has_room(self) -> bool:
        return self._part.size < limits.LOG_BUFFER_BYTES or self._closing.is_set()

    def _is_urgent(self) -> bool:
        return self._closing.is_set() or self._part.size >= limits.LOG_PART_BYTES

    def _store(self, part: _Part) -> bool:
        """Keeps trying: a store that is away for a while delays the log and loses nothing of it."""
        named = LogPart(self._attempt, next(self._numbers), min(part.seqs, default=0), max(part.seqs, default=0))
        for seconds in itertools.chain(_RETRY_SECONDS, itertools.repeat(_RETRY_SECONDS[-1])):
            try:
                log_parts.store(self._blobs, self._run_id, named, b"".join(part.pieces))
            except Exception as error:  # noqa: BLE001 - whatever the store's adapter raises, the part is kept
                self._failure = error
            else:
                self._failure = None
                return True
            if time.monotonic() + seconds > self._given_up_at:
                return False
            time.sleep(seconds)
        raise AssertionError("repeats for ever")


class Quoted:
    """What one command prints, as it stands in the log."""

    def __init__(self, log: LogFile) -> None:
        self._log, self._held = log, ""

    def write(self, text: str) -> None:
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""  # the line feed that belongs to it may be on its way
        self._log.quote(self, harmless(text.removesuffix("\r")))

    def close(self) -> None:
        self._log.quote(self, harmless(self._held))
        self._held = ""


def _behind_quotes(text: str) -> str:
    """Every line that begins in it begins with the mark; the first one's is not its own to set."""
    marked = text.replace("\n", f"\n{QUOTE}")
    return marked.removesuffix(QUOTE) if text.endswith("\n") else marked


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
