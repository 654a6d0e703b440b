"""Events may come doubled, early or late; out of here each comes once, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandpiper_cli.client import Event


class InOrder:
    def __init__(self, after: int) -> None:
        self.seen = after
        self._early: dict[int, Event] = {}

    @property
    def has_gap(self) -> bool:
        """Something is held back because something before it is missing."""
        return bool(self._early)

    def take(self, event: Event) -> list[Event]:
        """All that can be passed on now that this event is here."""
        if event.seq > self.seen:
            self._early[event.seq] = event
        ready: list[Event] = []
        while (following := self._early.pop(self.seen + 1, None)) is not None:
            ready.append(following)
            self.seen += 1
        return ready
