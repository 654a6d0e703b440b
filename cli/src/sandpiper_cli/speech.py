"""What the model is just saying, put together from pieces of which some may be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from sandpiper_cli.text import neutralise

if TYPE_CHECKING:
    from sandpiper_cli.client import Event, Json

SHOWN_CHARS = 400  # a few lines below the log; all of it stands in the log when the model has said it
_STYLES = {"thinking": "dim italic", "text": "italic"}


class Speech:
    def __init__(self) -> None:
        self._block: tuple[int, int] | None = None
        self._text, self._end = "", 0
        self._style = ""

    def hear(self, delta: Json) -> None:
        block, offset, text = (delta["turn"], delta["block"]), int(delta["offset"]), str(delta["text"])
        if block != self._block or offset < self._end:  # other words, or the same ones begun anew
            self._block, self._text, self._end = block, "", 0
        missing = "… " if offset > self._end else ""
        self._text = (self._text + missing + text)[-SHOWN_CHARS:]
        self._end = offset + len(text)
        self._style = _STYLES.get(str(delta.get("kind")), "")

    def update(self, event: Event) -> None:
        """Whatever the agent does next, what it said is an event by then."""
        if event.type.startswith("agent_"):
            self._block, self._text, self._end = None, "", 0

    def __rich__(self) -> Text:
        return Text(neutralise(self._text), style=self._style)

    def __bool__(self) -> bool:
        return bool(self._text)
