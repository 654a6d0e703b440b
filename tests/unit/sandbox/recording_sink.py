"""A sink that keeps events in a list and everything said in a log file, as the reporter does."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sandbox_task.logfile import LogFile
from sandbox_task.output import CommandOutput
from sandbox_task.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class RecordingSink:
    def __init__(self, directory: Path, secrets: tuple[str, ...] = ()) -> None:
        self.log = LogFile(directory / "log.txt")
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
