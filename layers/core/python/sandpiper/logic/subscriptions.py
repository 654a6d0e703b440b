"""Sockets that follow runs: opened with a ticket, told what has been, then what is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandpiper import limits
from sandpiper.errors import SandpiperError
from sandpiper.logic import frames
from sandpiper.logic.access import no_such_run
from sandpiper.ports import Gone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandpiper.ports import Clock, Connections, EventLog, Sockets


@dataclass(frozen=True)
class Subscriptions:
    connections: Connections
    log: EventLog
    sockets: Sockets
    clock: Clock

    def connect(self, connection_id: str, ticket: str) -> None:
        """Raises AuthenticationError, QuotaExceeded."""
        now = int(self.clock.now().timestamp())
        identity = self.connections.redeem_ticket(ticket, now=now)
        self.connections.open(connection_id, identity, expires_at=now + limits.CONNECTION_SECONDS, now=now)

    def disconnect(self, connection_id: str) -> None:
        self.connections.close(connection_id)

    def receive(self, connection_id: str, text: str | None, request_id: str) -> None:
        """Whatever comes in is answered in the socket, which stays open."""
        try:
            self._answer(connection_id, text, request_id)
        except Gone:
            self.connections.close(connection_id)

    def _answer(self, connection_id: str, text: str | None, request_id: str) -> None:
        try:
            identity = self.connections.identity(connection_id)
            self._act(connection_id, frames.parse(text), identity)
        except SandpiperError as error:
            self._send(connection_id, frames.error_frame(error, request_id))

    def _act(self, connection_id: str, frame: frames.ClientFrame, identity: Mapping[str, Any]) -> None:
        match frame:
            case frames.Ping():
                self._send(connection_id, {"type": "pong"})
            case frames.Unsubscribe(run_id):
                self.connections.unsubscribe(connection_id, run_id)
                self._send(connection_id, {"type": "unsubscribed", "run_id": run_id})
            case frames.Subscribe(run_id, after):
                self._subscribe(connection_id, run_id, after, identity)

    def _subscribe(self, connection_id: str, run_id: str, after: int, identity: Mapping[str, Any]) -> None:
        if self.log.run_head(run_id)["owner"] != identity["user"]:
            raise no_such_run(run_id)
        self.connections.subscribe(connection_id, run_id)
        # Read again, after the row: what is appended from here on finds the subscription and comes live.
        last_seq = self.log.run_head(run_id)["last_seq"]
        self._send(connection_id, {"type": "subscribed", "run_id": run_id, "after": after, "last_seq": last_seq})
        self._replay(connection_id, run_id, after, last_seq)

    def _replay(self, connection_id: str, run_id: str, after: int, last_seq: int) -> None:
        while after < last_seq:
            events = self.log.read(run_id, after=after, limit=min(limits.MAX_PAGE, last_seq - after))
            for event in events:
                self._send(connection_id, frames.event_frame(event))
            if not events:
                return
            after = events[-1]["seq"]

    def _send(self, connection_id: str, frame: Mapping[str, Any]) -> None:
        self.sockets.send(connection_id, frames.encode(frame))
