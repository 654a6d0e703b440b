"""What people want of the run: filled by the control thread, looked at by the agent."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from sandpiper.logic import suspension

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandpiper.models.run import ControlRequest


class Inbox:
    """`seen` is the number of the last request that had come when the agent last listened to messages.

    A message is heard once, also over several attempts. Answers and pauses hold whenever they came, so every attempt
    reads the inbox from its beginning.
    """

    def __init__(self, seen: int = 0) -> None:
        self._lock = threading.Lock()
        self._requests: list[ControlRequest] = []
        self.seen, self.received = seen, 0
        self.may_interrupt = False  # what is being done can be broken off for a pause

    def receive(self, requests: Iterable[ControlRequest]) -> None:
        with self._lock:
            new = [request for request in requests if request.n > self.received]
            self._requests = [*self._requests, *new]
            self.received = max([self.received, *(request.n for request in new)])

    def take(self) -> list[str]:
        """The texts of the messages that have come since the last time."""
        with self._lock:
            new = [request for request in self._requests if request.n > self.seen]
            self.seen = max(self.seen, self.received)
        return [str(request.data.get("text", "")) for request in new if request.action == "message"]

    def answer_to(self, approval_id: str) -> ControlRequest | None:
        return suspension.answer_to(approval_id, self._requests)

    def allows(self, kind: str) -> bool:
        """Whether somebody has approved this kind of risk for the rest of the run."""
        wanted = {"decision": "approve", "scope": "run", "kind": kind}
        return any(wanted.items() <= request.data.items() for request in self._requests if request.action == "approve")

    @property
    def is_paused(self) -> bool:
        return suspension.open_pause(self._requests) is not None

    @property
    def interrupts(self) -> bool:
        pause = suspension.open_pause(self._requests)
        return self.may_interrupt and pause is not None and pause.data.get("now") is True
