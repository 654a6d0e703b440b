"""Sockets, subscriptions and tickets, in memory."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from sandpiper import limits
from sandpiper.adapters.connection_counts import too_many_sockets, too_many_tickets
from sandpiper.errors import AuthenticationError, NotFound
from sandpiper.ports import Gone

if TYPE_CHECKING:
    from collections.abc import Mapping


class FakeConnections:
    def __init__(self) -> None:
        self._issued: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()
        self._counted: dict[str, str] = {}
        self._tickets: dict[str, tuple[dict[str, Any], int]] = {}
        self._open: dict[str, dict[str, Any]] = {}
        self.expirations: dict[str, int] = {}
        self._follows: set[tuple[str, str]] = set()

    def issue_ticket(
        self, ticket: str, identity: Mapping[str, Any], *, expires_at: int, now: int | None = None
    ) -> None:
        if now is not None:
            self._issued[identity["user"], now // 60] += 1
            if self._issued[identity["user"], now // 60] > limits.TICKETS_PER_MINUTE:
                raise too_many_tickets(now)
        self._tickets[ticket] = (dict(identity), expires_at)

    def redeem_ticket(self, ticket: str, *, now: int) -> dict[str, Any]:
        identity, expires_at = self._tickets.pop(ticket, ({}, 0))
        if expires_at <= now:
            raise AuthenticationError("The ticket is unknown, used or expired. Ask for a new one.")
        return identity

    def open(self, connection_id: str, identity: Mapping[str, Any], *, expires_at: int, now: int | None = None) -> None:
        with self._lock:
            self._count(connection_id, identity["user"], now)
            self._open[connection_id] = dict(identity)
            self.expirations[connection_id] = expires_at

    def _count(self, connection_id: str, user: str, now: int | None) -> None:
        if now is not None:
            mine = [name for name, whose in self._counted.items() if whose == user and name in self._open]
            if sum(self.expirations[name] > now for name in mine) >= limits.MAX_CONNECTIONS:
                raise too_many_sockets()
            self._counted[connection_id] = user

    def identity(self, connection_id: str) -> dict[str, Any]:
        if connection_id not in self._open:
            raise NotFound(f"The connection {connection_id} is not open.")
        return dict(self._open[connection_id])

    def close(self, connection_id: str) -> None:
        self._open.pop(connection_id, None)
        self._follows = {pair for pair in self._follows if pair[0] != connection_id}

    def subscribe(self, connection_id: str, run_id: str) -> None:
        self.identity(connection_id)
        self._follows.add((connection_id, run_id))

    def unsubscribe(self, connection_id: str, run_id: str) -> None:
        self._follows.discard((connection_id, run_id))

    def subscribers(self, run_id: str) -> list[str]:
        return sorted(connection for connection, run in self._follows if run == run_id)


class FakeSockets:
    """Tests open the sockets (`connect`) and read what arrived (`frames`)."""

    def __init__(self) -> None:
        self.frames: dict[str, list[bytes]] = {}

    def connect(self, connection_id: str) -> None:
        self.frames[connection_id] = []

    def disconnect(self, connection_id: str) -> None:
        del self.frames[connection_id]

    def send(self, connection_id: str, frame: bytes) -> None:
        if len(frame) > limits.MAX_FRAME_BYTES:
            message = f"a frame of {len(frame)} bytes; {limits.MAX_FRAME_BYTES} is the most"
            raise ValueError(message)
        if connection_id not in self.frames:
            raise Gone(connection_id)
        self.frames[connection_id].append(frame)
