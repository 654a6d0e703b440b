"""Sockets that follow runs and speak to them: opened with a ticket, told what has been, then what is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sandpiper import limits
from sandpiper.errors import SandpiperError
from sandpiper.logic import frames
from sandpiper.logic.access import no_such_run
from sandpiper.ports import Gone, Stuck

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sandpiper.ports import Clock, Connections, EventLog, Sockets

    type Control = Callable[[frames.Control, Mapping[str, Any]], dict[str, Any]]


def runs_of(owner: str) -> str:
    """What a connection follows that follows all runs of somebody. No run has such an id."""
    return f"of:{owner}"


@dataclass(frozen=True)
class Subscriptions:
    """`control` does what a person asks of a run; it answers for the `ack` frame."""

    connections: Connections
    log: EventLog
    sockets: Sockets
    clock: Clock
    control: Control

    def connect(self, connection_id: str, ticket: str) -> None:
        """Raises AuthenticationError, QuotaExceeded."""
        now = int(self.clock.now().timestamp())
        identity = self.connections.redeem_ticket(ticket, now=now)
        self.connections.open(connection_id, identity, expires_at=now + limits.CONNECTION_SECONDS, now=now)

    def disconnect(self, connection_id: str) -> None:
        self.connections.close(connection_id)

    def receive(self, connection_id: str, text: str | None, request_id: str) -> None:
        """Whatever comes in is answered in the socket, which stays open as long as it takes the answers."""
        try:
            self._answer(connection_id, text, request_id)
        except (Gone, Stuck):
            self.connections.close(connection_id)

    def _answer(self, connection_id: str, text: str | None, request_id: str) -> None:
        try:
            identity = self.connections.identity(connection_id)
            self._act(connection_id, frames.parse(text), identity)
        except SandpiperError as error:
            self._send(connection_id, frames.error_frame(error, request_id, frames.key_in(text)))

    def _act(self, connection_id: str, frame: frames.ClientFrame, identity: Mapping[str, Any]) -> None:
        match frame:
            case frames.Ping():
                self._send(connection_id, {"type": "pong"})
            case frames.Control():
                self._send(connection_id, self._acknowledged(frame, identity))
            case frames.Unsubscribe(None):
                self.connections.unsubscribe(connection_id, runs_of(identity["user"]))
                self._send(connection_id, {"type": "unsubscribed", "runs": "all"})
            case frames.Unsubscribe(str(run_id)):
                self.connections.unsubscribe(connection_id, run_id)
                self._send(connection_id, {"type": "unsubscribed", "run_id": run_id})
            case frames.Subscribe(None):
                self._subscribe_to_all(connection_id, identity["user"])
            case frames.Subscribe(str(run_id), after):
                self._subscribe(connection_id, run_id, after, identity)

    def _acknowledged(self, frame: frames.Control, identity: Mapping[str, Any]) -> dict[str, Any]:
        key = {"key": frame.key} if frame.key else {}
        return {"type": "ack", "action": frame.action, "run_id": frame.run_id, **key, **self.control(frame, identity)}

    def _subscribe_to_all(self, connection_id: str, owner: str) -> None:
        self.connections.subscribe(connection_id, runs_of(owner))
        # After the row, as below: what is not in the heads comes live.
        heads = self.log.heads(owner, limit=limits.MAX_HEADS)
        self._send(connection_id, {"type": "subscribed", "runs": "all", "heads": heads})

    def _subscribe(self, connection_id: str, run_id: str, after: int, identity: Mapping[str, Any]) -> None:
        if self.log.run_head(run_id)["owner"] != identity["user"]:
            raise no_such_run(run_id)
        self.connections.subscribe(connection_id, run_id)
        # Read again, after the row: what is appended from here on finds the subscription and comes live.
        last_seq = self.log.run_head(run_id)["last_seq"]
        self._send(connection_id, {"type": "subscribed", "run_id": run_id, "after": after, "last_seq": last_seq})
        self._replay(connection_id, run_id, after, last_seq)

    def _replay(self, connection_id: str, run_id: str, after: int, last_seq: int) -> None:
        """As much as there is time for: the client asks for the rest. Live events come meanwhile, by another way."""
        ends_at = self.clock.now() + timedelta(seconds=limits.REPLAY_SECONDS)
        while after < last_seq:
            events = self.log.read(run_id, after=after, limit=min(limits.MAX_PAGE, last_seq - after))
            for event in events:
                if self.clock.now() >= ends_at:
                    more = {"type": "more", "run_id": run_id, "after": after, "last_seq": last_seq}
                    self._send(connection_id, more)
                    return
                self._send(connection_id, frames.event_frame(event))
                after = event["seq"]
            if not events:
                return

    def _send(self, connection_id: str, frame: Mapping[str, Any]) -> None:
        self.sockets.send(connection_id, frames.encode(frame))
