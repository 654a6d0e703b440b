"""What a program says to a terminal, as text: without what only a terminal obeys."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox_task.isolation.wall import OutputSink

_SEQUENCE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, moves of the cursor
    rb"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS, …: titles, links, the clipboard
    rb"|[ -/]*[0-Z\\^-~])"
    rb"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]"
)
_LINE_END = re.compile(rb"\r+\n?")
_LONGEST = 4096  # of a sequence that may still come to its end


class PlainText:
    """Taken out before anything else looks at it: a secret with a sequence in its middle is a secret again.

    A line that is drawn anew becomes another line.
    """

    def __init__(self, on_output: OutputSink) -> None:
        self._on_output = on_output
        self._held = b""

    def feed(self, data: bytes) -> None:
        text = _SEQUENCE.sub(b"", self._held + data)
        end = self._finished(text)
        self._held = text[end:]
        self._hand_on(text[:end])

    def close(self) -> None:
        held, self._held = self._held, b""
        self._hand_on(held)

    def _finished(self, text: bytes) -> int:
        """Up to where it is known what it is: a sequence or the end of a line may be cut in two."""
        begun = text.find(b"\x1b", -_LONGEST)
        if begun >= 0:
            return begun
        return len(text.rstrip(b"\r"))

    def _hand_on(self, text: bytes) -> None:
        clean = _LINE_END.sub(b"\n", text.replace(b"\x1b", b""))
        if clean:
            self._on_output(clean)
