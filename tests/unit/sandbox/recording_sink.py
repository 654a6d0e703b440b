"""A sink that keeps events in a list and everything said in a log, as the reporter does."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sandbox_task.logfile import QUOTE, LogFile
from sandbox_task.output import CommandOutput
from sandbox_task.redaction import Redactor
from sandpiper.logic import log_parts
from sandpiper.testing.fakes import FakeBlobs

if TYPE_CHECKING:
    from collections.abc import Iterator

RUN_ID = "run"


class RecordingSink:
    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        self._blobs = FakeBlobs()
        self.log = LogFile(self._blobs, RUN_ID, 1)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._redactor = Redactor(secrets)
        self._lock = threading.Lock()

    def emit(self, type_: str, **data: Any) -> None:
        with self._lock:
            self.events.append((type_, data))

    @contextmanager
    def output(self, **data: Any) -> Iterator[CommandOutput]:
        output = CommandOutput(self._redactor, self.log, lambda part: self.emit("tool_output", **data, **part))
        try:
            yield output
        finally:
            output.close()

    def of(self, type_: str) -> list[dict[str, Any]]:
        return [data for other, data in self.events if other == type_]

    def said(self, call_id: str) -> str:
        return "".join(data["text"] for data in self.of("tool_output") if data["tool_id"] == call_id)

    def printed(self) -> str:
        """What the log has of it; nothing more is logged after this."""
        self.log.close()
        return printed(self._blobs, RUN_ID)


def logged(blobs: FakeBlobs, run_id: str) -> str:
    return b"".join(log_parts.whole(blobs, run_id)).decode()


def printed(blobs: FakeBlobs, run_id: str) -> str:
    """What commands have printed, without the log's own marks."""
    lines = logged(blobs, run_id).splitlines(keepends=True)
    return "".join(line.removeprefix(QUOTE) for line in lines if line.startswith(QUOTE))
