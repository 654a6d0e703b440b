"""Sockets of the stack, and runs that no sandbox works on: their events are what a test appends."""

from __future__ import annotations

import contextlib
import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from websockets.sync.client import connect

from sandpiper.adapters.blobs import S3Blobs
from sandpiper.adapters.clock import SystemClock
from sandpiper.adapters.connections import DynamoConnections
from sandpiper.adapters.runs import DynamoRuns
from sandpiper.logic.ids import new_run_id
from sandpiper.models.events import NewEvent
from sandpiper.models.run import Run
from sandpiper.models.spec import RunSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from websockets.sync.client import ClientConnection

    from tests.e2e.conftest import Stack
    from tests.e2e.support import Person

FRAME_SECONDS = 30.0


class Socket:
    """One open socket. Every frame is JSON with a type, or the test fails."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def send(self, message: object) -> None:
        self.connection.send(message if isinstance(message, (str, bytes)) else json.dumps(message))

    def frame(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self.connection.recv(timeout=FRAME_SECONDS))
        assert isinstance(frame["type"], str)
        return frame

    def ask(self, message: object) -> dict[str, Any]:
        self.send(message)
        return self.frame()

    def subscribe(self, run_id: str, *, after: int = 0) -> dict[str, Any]:
        return self.ask({"action": "subscribe", "run_id": run_id, "after": after})

    def numbers(self, count: int) -> list[int]:
        """The numbers of the next events."""
        return [self.frame()["event"]["seq"] for _ in range(count)]


def ticket_of(person: Person) -> str:
    answer = person.http.post("/tickets")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["ticket"])


@contextlib.contextmanager
def opened(stack: Stack, ticket: str) -> Iterator[Socket]:
    with connect(f"{stack.ws_url}?ticket={ticket}", open_timeout=FRAME_SECONDS, proxy=None) as connection:
        yield Socket(connection)


@contextlib.contextmanager
def socket_of(person: Person) -> Iterator[Socket]:
    with opened(person.stack, ticket_of(person)) as socket:
        yield socket


def embedded_runs(stack: Stack) -> DynamoRuns:
    """As the sandbox writes to them."""
    return DynamoRuns(
        stack.aws("dynamodb"),
        runs_table=stack.outputs["RunsTable"],
        events_table=stack.outputs["EventsTable"],
        blobs=S3Blobs(stack.aws("s3"), bucket=stack.outputs["ArtifactsBucket"]),
        clock=SystemClock(),
    )


def embedded_connections(stack: Stack) -> DynamoConnections:
    return DynamoConnections(stack.aws("dynamodb"), connections_table=stack.outputs["ConnectionsTable"])


class SilentRun:
    """A run in the tables only: no execution, no sandbox. Event 1 says that it is queued."""

    def __init__(self, stack: Stack, owner: str) -> None:
        self._runs = embedded_runs(stack)
        self._connections = embedded_connections(stack)
        now = datetime.now(UTC)
        spec = RunSpec(task="nothing")
        run = Run(run_id=new_run_id(now), owner=owner, spec=spec, created_at=now, updated_at=now)
        self.run_id = self._runs.create(run, [NewEvent(type="run_queued")]).run_id

    def append(self, count: int = 1, **data: Any) -> list[int]:
        """The numbers of the new events."""
        events = [NewEvent(type="agent_message", data={"text": "…", **data}) for _ in range(count)]
        return [event.seq for event in self._runs.append(self.run_id, events)]

    def end(self) -> None:
        self._runs.change(
            self.run_id,
            allowed=["queued"],
            changes={"status": "cancelled", "ended_at": datetime.now(UTC)},
            events=[NewEvent(type="run_cancelled")],
        )

    def subscribers(self) -> list[str]:
        return self._connections.subscribers(self.run_id)

    def follow_with_a_dead_connection(self) -> str:
        """A subscriber that the gateway knows nothing of, as one is whose $disconnect got lost."""
        name = f"dead-{self.run_id[-8:]}"
        self._connections.open(name, {"user": "nobody", "org": None}, expires_at=int(time.time()) + 600)
        self._connections.subscribe(name, self.run_id)
        return name
