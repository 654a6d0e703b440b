"""The output of one command on its way out: all of it to the log, a bounded part of it as events."""

from __future__ import annotations

import codecs
import threading
import time
from typing import TYPE_CHECKING, Any

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.logfile import LogFile
    from sandbox_task.redaction import Redactor


class HeadAndTail:
    """The first and the last part of a text of any length; what lies between is counted."""

    def __init__(self, head: int, tail: int) -> None:
        self._head_size, self._tail_size = head, tail
        self._head, self._tail = "", ""
        self._cut = 0

    def add(self, text: str) -> str:
        """Returns what of `text` still belongs to the head."""
        room = self._head_size - len(self._head)
        first, rest = text[:room], text[room:]
        self._head += first
        self._tail += rest
        over = len(self._tail) - self._tail_size
        if over > self._tail_size:  # not at every piece: cutting costs a copy
            self._cut += over
            self._tail = self._tail[over:]
        return first

    def rest(self) -> tuple[int, str]:
        """How much was left out, and the tail."""
        over = max(0, len(self._tail) - self._tail_size)
        return self._cut + over, self._tail[over:]

    def text(self, hint: str = "") -> str:
        """`hint` stands where something was left out."""
        omitted, tail = self.rest()
        marker = f"\n… {omitted:,} characters left out{hint} …\n" if omitted else ""
        return f"{self._head}{marker}{tail}"

    def __str__(self) -> str:
        return self.text()


class CommandOutput:
    """Redacted before it goes anywhere. `shown` is what the model is told."""

    def __init__(self, redactor: Redactor, log: LogFile, send: Callable[[dict[str, Any]], None]) -> None:
        self.shown = HeadAndTail(limits.MODEL_OUTPUT_CHARS // 2, limits.MODEL_OUTPUT_CHARS // 2)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stream = redactor.stream()
        self._quoted = log.quoted()
        self._send = send
        self._lock = threading.Lock()
        self._events = HeadAndTail(limits.OUTPUT_HEAD_BYTES, limits.OUTPUT_TAIL_BYTES)
        self._copies: list[Callable[[str], None]] = []
        self._waiting = ""
        self._sent_at = 0.0

    def copy_to(self, take: Callable[[str], None]) -> None:
        """Hand on all of it from now on, redacted."""
        self._copies.append(take)

    def feed(self, data: bytes) -> None:
        self._take(self._stream.feed(self._decoder.decode(data)))
        self.flush_if_due()

    def flush_if_due(self) -> None:
        """Called at every piece, and from time to time by the reporter when there is none."""
        with self._lock:
            if time.monotonic() - self._sent_at >= limits.OUTPUT_EVERY_SECONDS:
                self._flush()

    def close(self) -> None:
        self._take(self._stream.feed(self._decoder.decode(b"", final=True)) + self._stream.close())
        self._quoted.close()
        with self._lock:
            self._flush()
            omitted, tail = self._events.rest()
            if omitted:
                self._send({"text": "", "omitted_bytes": omitted})
            self._waiting = tail
            self._flush()

    def _take(self, text: str) -> None:
        self._quoted.write(text)
        self.shown.add(text)
        for take in self._copies:
            take(text)
        with self._lock:
            self._waiting += self._events.add(text)

    def _flush(self) -> None:
        while self._waiting:
            size = _fitting(self._waiting)
            self._send({"text": self._waiting[:size]})
            self._waiting = self._waiting[size:]
            self._sent_at = time.monotonic()


def _fitting(text: str) -> int:
    """How many characters go into one event."""
    size = min(len(text), limits.OUTPUT_CHUNK_BYTES)
    while len(text[:size].encode(errors="replace")) > limits.OUTPUT_CHUNK_BYTES:
        size //= 2
    return size
