"""Events of the log, sent to the sockets that follow their runs.

| what can fail | what happens then |
|---|---|
| a connection is gone | it is deleted, and no other |
| a connection can't be written to | tried again, then deleted: its next ping says so, its client comes back |
| the subscribers can't be read | tried again, then the run's records are reported as failed and come back |
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandpiper.logic import frames
from sandpiper.ports import Gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sandpiper.ports import Connections, Sockets

PAUSES_SECONDS = (0.05, 0.2, 0.8)
_PARALLEL = 16

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LogRecord:
    """One new event, with the name that its stream gave it."""

    sequence_number: str
    event: dict[str, Any]


@dataclass(frozen=True)
class Broadcast:
    connections: Connections
    sockets: Sockets
    sleep: Callable[[float], None]

    def send(self, records: Sequence[LogRecord]) -> list[str]:
        """Send all; returns the sequence numbers of those whose subscribers could not be found out."""
        outboxes: dict[str, list[bytes]] = {}
        failed: list[str] = []
        for run_id, of_run in _by_run(records).items():
            try:
                subscribers = self._subscribers(run_id)
            except Exception:
                logger.exception("subscribers can't be read", extra={"run_id": run_id})
                failed += [record.sequence_number for record in of_run]
                continue
            if subscribers:
                encoded = [frames.encode(frames.event_frame(record.event)) for record in of_run]
                for connection_id in subscribers:
                    outboxes.setdefault(connection_id, []).extend(encoded)
        self._deliver(outboxes)
        return failed

    def _subscribers(self, run_id: str) -> list[str]:
        return self._insist(lambda: self.connections.subscribers(run_id))

    def _deliver(self, outboxes: dict[str, list[bytes]]) -> None:
        """Each connection gets its frames in order; connections do not wait for one another."""
        if not outboxes:
            return
        with ThreadPoolExecutor(max_workers=min(_PARALLEL, len(outboxes))) as pool:
            list(pool.map(self._deliver_to, outboxes, outboxes.values()))

    def _deliver_to(self, connection_id: str, outbox: Iterable[bytes]) -> None:
        try:
            for frame in outbox:
                self._send_frame(connection_id, frame)
        except Gone:
            self._forget(connection_id)
        except Exception:
            logger.exception("a connection can't be written to", extra={"connection_id": connection_id})
            self._forget(connection_id)

    def _send_frame(self, connection_id: str, frame: bytes) -> None:
        self._insist(lambda: self.sockets.send(connection_id, frame))

    def _forget(self, connection_id: str) -> None:
        try:
            self.connections.close(connection_id)
        except Exception:
            # It expires by itself; until then each batch tries it again.
            logger.exception("a connection can't be deleted", extra={"connection_id": connection_id})

    def _insist[T](self, act: Callable[[], T]) -> T:
        for pause in PAUSES_SECONDS:
            try:
                return act()
            except Gone:
                raise
            except Exception:
                logger.warning("trying again", exc_info=True)
                self.sleep(pause)
        return act()


def _by_run(records: Iterable[LogRecord]) -> dict[str, list[LogRecord]]:
    runs: dict[str, list[LogRecord]] = {}
    for record in records:
        runs.setdefault(record.event["run_id"], []).append(record)
    return runs
