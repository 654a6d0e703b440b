"""The complete log of an attempt: every event in words, every command with all of its output, nothing cut."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class LogFile:
    """Grows on disk, never in memory. Takes text that has been redacted already."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file = path.open("a", encoding="utf-8", errors="replace", newline="")
        self._at_line_start = True

    def go_on_from(self, fetch: Callable[[BinaryIO], None]) -> None:
        """Begin with what an earlier attempt has written."""
        with self._lock, self.path.open("ab") as file:
            fetch(file)

    def event(self, type_: str, data: Mapping[str, Any]) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._write(f"[{time}] {type_}{_in_words(data)}\n", on_new_line=True)

    def text(self, text: str) -> None:
        self._write(text, on_new_line=False)

    def close(self) -> int:
        """The size in bytes, now final."""
        with self._lock:
            self._file.close()
        return self.path.stat().st_size

    def _write(self, text: str, *, on_new_line: bool) -> None:
        with self._lock:
            if not text or self._file.closed:
                return
            if on_new_line and not self._at_line_start:
                self._file.write("\n")
            self._file.write(text)
            self._file.flush()
            self._at_line_start = text.endswith("\n")


def _in_words(data: Mapping[str, Any]) -> str:
    """Short values on the line, long text below it, as it is."""
    short = {key: value for key, value in data.items() if not _is_long(value)}
    line = "".join(f" {key}={_plain(value)}" for key, value in short.items())
    long = "".join(f"\n  {key}:\n{_indented(value)}" for key, value in data.items() if _is_long(value))
    return line + long


def _is_long(value: object) -> bool:
    return isinstance(value, str) and ("\n" in value or len(value) > 200)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _plain(value: object) -> str:
    return value if isinstance(value, str) and " " not in value else json.dumps(value, ensure_ascii=False, default=str)
