"""Writing to stdout: JSON for scripts, and foreign bytes that a terminal must not obey."""

from __future__ import annotations

import codecs
import json
import sys
from typing import TYPE_CHECKING, Any

from sandpiper_cli.text import neutralise

if TYPE_CHECKING:
    from sandpiper_cli.client import Target


def print_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document) + "\n")


class TerminalWriter:
    """A binary file that shows what is written to it, with control characters made visible."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def write(self, chunk: bytes) -> int:
        sys.stdout.write(neutralise(self._decoder.decode(chunk)))
        return len(chunk)


def stdout_target() -> Target:
    """Bytes as they are for a pipe or a file; made harmless for a terminal."""
    return TerminalWriter() if sys.stdout.isatty() else sys.stdout.buffer
