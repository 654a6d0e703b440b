"""What people have said to the run and the agent has not heard yet."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandpiper.models.run import ControlRequest


class Inbox:
    """Filled by the control thread, emptied by the agent. `seen` is the number of the last request it has taken."""

    def __init__(self, seen: int = 0) -> None:
        self._lock = threading.Lock()
        self._waiting: list[ControlRequest] = []
        self.seen = self.received = seen

    def receive(self, requests: Iterable[ControlRequest]) -> None:
        with self._lock:
            new = [request for request in requests if request.n > self.received]
            self._waiting += new
            self.received = max([self.received, *(request.n for request in new)])

    def take(self) -> list[str]:
        """The texts of the messages that have come since the last time."""
        with self._lock:
            taken, self._waiting = self._waiting, []
            self.seen = self.received
        return [str(request.data.get("text", "")) for request in taken if request.action == "message"]
