"""Events of the log, sent to the sockets that follow their runs.

| what can fail | what happens then |
|---|---|
| a connection is gone | it is deleted, and no other |
| a connection takes nothing, or too slowly | deleted without another try: others would wait for it |
| a connection can't be written to | tried again, then deleted: its next ping says so, its client comes back |
| this function dies in the middle of a batch | the batch comes again; clients drop what they have seen |
| the subscribers can't be read | tried again, then the run's records are reported as failed and come back |
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandpiper import limits
from sandpiper.errors import NotFound
from sandpiper.logic import frames
from sandpiper.logic.subscriptions import runs_of
from sandpiper.ports import Gone, Stuck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sandpiper.ports import Connections, Sockets

PAUSES_SECONDS = (0.05, 0.2, 0.8)
_PARALLEL = 32

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LogRecord:
    """One new event, or what the model is just saying, with the name that its stream gave it."""

    sequence_number: str
    event: dict[str, Any]

    def encoded(self) -> bytes:
        is_delta = self.event["type"] == frames.DELTA
        return frames.encode(frames.delta_frame(self.event) if is_delta else frames.event_frame(self.event))


@dataclass(frozen=True)
class Broadcast:
    connections: Connections
    sockets: Sockets
    owner_of: Callable[[str], str]
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic

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
                encoded = [record.encoded() for record in of_run]
                for connection_id in subscribers:
                    outboxes.setdefault(connection_id, []).extend(encoded)
        self._deliver(outboxes)
        return failed

    def _subscribers(self, run_id: str) -> list[str]:
        """Who follows the run, and who follows all runs of its owner; each once."""
        followers = self._insist(lambda: self.connections.subscribers(run_id))
        try:
            owner = self._insist(lambda: self.owner_of(run_id))
        except NotFound:
            return followers
        return list(dict.fromkeys(followers + self._insist(lambda: self.connections.subscribers(runs_of(owner)))))

    def _deliver(self, outboxes: dict[str, list[bytes]]) -> None:
        """Each connection gets its frames in order; connections do not wait for one another."""
        if not outboxes:
            return
        with ThreadPoolExecutor(max_workers=min(_PARALLEL, len(outboxes))) as pool:
            list(pool.map(self._deliver_to, outboxes, outboxes.values()))

    def _deliver_to(self, connection_id: str, outbox: Iterable[bytes]) -> None:
        ends_at = self.now() + limits.DELIVERY_SECONDS
        try:
            for frame in outbox:
                self._send_frame(connection_id, frame, ends_at)
        except (Gone, Stuck):
            self._forget(connection_id)
        except Exception:
            logger.exception("a connection can't be written to", extra={"connection_id": connection_id})
            self._forget(connection_id)

    def _send_frame(self, connection_id: str, frame: bytes, ends_at: float) -> None:
        if self.now() > ends_at:
            raise Stuck(connection_id)
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
            except (Gone, Stuck, NotFound):
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
