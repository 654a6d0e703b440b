"""One reply of the model while it is being said: redacted, gathered, and handed out piece by piece.

The pieces are shown and not kept; what the model has said is in the `agent_message` events that follow.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandpiper import limits

if TYPE_CHECKING:
    from sandbox_task.model.port import Voice
    from sandbox_task.redaction import Redactor


@dataclass
class _Block:
    """Thoughts, or words, without the other between them. `told` characters of it were handed out."""

    voice: Voice
    text: str = ""
    told: int = 0

    def take(self) -> dict[str, Any] | None:
        """`offset` says where in the block the piece belongs: more than can be shown in time is left out."""
        new = self.text[self.told :][-limits.WORDS_CHARS :]
        self.told = len(self.text)
        return {"kind": self.voice, "offset": self.told - len(new), "text": new} if new else None


class Words:
    def __init__(self, redactor: Redactor, turn: int) -> None:
        self._redactor, self._turn = redactor, turn
        self._lock = threading.Lock()
        self._blocks: deque[_Block] = deque()
        self._stream = redactor.stream()
        self._count = 0
        self._over = False

    def hear(self, voice: Voice, piece: str) -> None:
        with self._lock:
            if self._over:
                return
            if not self._blocks or self._blocks[-1].voice != voice:
                self._begin(voice)
            self._blocks[-1].text += self._stream.feed(piece)

    def take(self) -> list[dict[str, Any]]:
        """What is new. A secret that may still be arriving is held back."""
        with self._lock:
            pieces = [(self._count - len(self._blocks) + place, b.take()) for place, b in enumerate(self._blocks)]
            while len(self._blocks) > 1:
                self._blocks.popleft()
        return [{"turn": self._turn, "block": block, **piece} for block, piece in pieces if piece]

    def close(self) -> None:
        """The reply is there, or was given up: whoever goes on reading it speaks to nobody."""
        with self._lock:
            self._over = True

    def _begin(self, voice: Voice) -> None:
        if self._blocks:
            self._blocks[-1].text += self._stream.close()
        self._stream = self._redactor.stream()
        self._blocks.append(_Block(voice))
        self._count += 1
