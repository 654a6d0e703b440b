"""What commands said, redacted, kept in A's private room for the model to read any part of it later."""

from __future__ import annotations

import codecs
import itertools
import os
import tempfile
import threading
import weakref
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from sandbox_task.agent.tools.excerpt import Excerpt, excerpt
from sandbox_task.agent.tools.outcome import ToolError
from sandbox_task.output import HeadAndTail
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sandbox_task.agent.ports import Output, Sink

_CHUNK = 1 << 16


class KeptOutput:
    """In memory while it is short, in a file without a name when it is not. `lines` counts what is not kept, too."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.lines = 0
        self.size = 0
        self.is_growing = True
        self._lock = threading.Lock()
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_CHUNK, dir=str(directory))  # noqa: SIM115 - see below
        weakref.finalize(self, self._file.close)
        self._told = 0

    def add(self, text: str) -> None:
        data = text.encode(errors="replace")
        with self._lock:
            self.lines += data.count(b"\n")
            if not self._file.closed:
                self._file.seek(0, os.SEEK_END)
                self.size += self._file.write(data[: limits.KEPT_OUTPUT_BYTES - self.size])

    def range(self, first: int, last: int | None) -> Excerpt:
        return excerpt(self._chunks(0), first, last)

    def news(self) -> str:
        """What came since this was asked for the last time, head and tail."""
        shown, decoder = _for_model(), codecs.getincrementaldecoder("utf-8")("replace")
        for chunk in self._chunks(self._told):
            self._told += len(chunk)
            shown.add(decoder.decode(chunk))
        return shown.text(self.hint)

    @property
    def hint(self) -> str:
        return f"; read_output id={self.name} shows any of the {self.lines:,} lines"

    def drop(self) -> None:
        with self._lock:
            self._file.close()

    def _chunks(self, position: int) -> Iterator[bytes]:
        while chunk := self._chunk(position):
            position += len(chunk)
            yield chunk

    def _chunk(self, position: int) -> bytes:
        with self._lock:
            if self._file.closed:
                raise ToolError(f"The output {self.name} is no longer kept.")
            self._file.seek(position)
            return self._file.read(_CHUNK)


class Record:
    """The output of one command: to events and log by the sink, and kept."""

    def __init__(self, output: Output, kept: KeptOutput) -> None:
        self.feed: Callable[[bytes], None] = output.feed
        self.kept = kept
        self._shown = output.shown
        output.copy_to(kept.add)

    @property
    def text(self) -> str:
        return self._shown.text(self.kept.hint)

    @property
    def is_cut(self) -> bool:
        return self._shown.rest()[0] > 0


class KeptOutputs:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._kept: dict[str, KeptOutput] = {}

    @contextmanager
    def record(self, sink: Sink, call_id: str) -> Iterator[Record]:
        kept = self._new()
        try:
            with sink.output(tool_id=call_id) as output:
                yield Record(output, kept)
        finally:
            kept.is_growing = False

    def find(self, name: str) -> KeptOutput:
        if name not in self._kept:
            raise ToolError(
                f"There is no output {name!r}, or no longer. Without an id, background processes are listed."
            )
        return self._kept[name]

    def drop(self, kept: KeptOutput) -> None:
        with self._lock:
            self._kept.pop(kept.name, None)
        kept.drop()

    def _new(self) -> KeptOutput:
        with self._lock:
            kept = KeptOutput(f"c{next(self._numbers)}", self._directory)
            self._kept[kept.name] = kept
            oldest_first = [other for other in self._kept.values() if not other.is_growing]
        for other in oldest_first:
            if not self._is_too_much():
                break
            self.drop(other)
        return kept

    def _is_too_much(self) -> bool:
        with self._lock:
            size = sum(kept.size for kept in self._kept.values())
            return len(self._kept) > limits.KEPT_OUTPUTS or size > limits.KEPT_OUTPUTS_BYTES


def _for_model() -> HeadAndTail:
    return HeadAndTail(limits.MODEL_OUTPUT_CHARS // 2, limits.MODEL_OUTPUT_CHARS // 2)
