"""What the server was sent. Keys never get into it."""

from __future__ import annotations

import json
import time
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_KEPT = 5_000
_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "cookie", "proxy-authorization"})
_REDACTED = "[redacted]"


class Record:
    """The newest requests in memory, and every one as a file if a directory is given."""

    def __init__(self, directory: Path | None = None) -> None:
        self._entries: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._directory = directory
        self._count = 0
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)

    def begin(self, path: str, headers: Mapping[str, str], body: object) -> dict[str, Any]:
        """An entry to which the outcome is added when it is known."""
        self._count += 1
        shown = {name.lower(): _shown(name, value) for name, value in headers.items()}
        entry = {"n": self._count, "at": time.monotonic(), "path": path, "headers": shown, "body": body}
        self._entries.append(entry)
        return entry

    def complete(self, entry: dict[str, Any], **outcome: Any) -> None:
        entry.update(outcome)
        if self._directory is not None:
            text = json.dumps(entry, indent=2, ensure_ascii=False)
            (self._directory / f"{entry['n']:05d}.json").write_text(text, encoding="utf-8")

    def times_seen(self, digest: str) -> int:
        return sum(entry.get("digest") == digest for entry in self._entries)

    def entries(self) -> list[dict[str, Any]]:
        return [dict(entry) for entry in self._entries]

    def clear(self) -> None:
        self._entries.clear()


def _shown(name: str, value: str) -> str:
    return _REDACTED if name.lower() in _SECRET_HEADERS else value
