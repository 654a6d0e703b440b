"""Following a run as it happens: every event once, in order, however often the socket is cut.

The socket is the fast way, the event log over HTTP the sure one: whenever the socket is silent for long, leaves a gap
or can't be had, the log is asked for what comes after the last event seen.
"""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING, Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from sandpiper_cli.addresses import is_loopback
from sandpiper_cli.client import TERMINAL, Api, event_of
from sandpiper_cli.failures import ApiError, Unreachable
from sandpiper_cli.ordering import InOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from websockets.sync.client import ClientConnection

    from sandpiper_cli.client import Event, Json

GAP_SECONDS = 2.0
SILENCE_SECONDS = 10.0
GIVE_UP_SECONDS = 60.0
_FIRST_WAIT_SECONDS = 0.2
_LONGEST_WAIT_SECONDS = 2.0
_MAX_FRAME_BYTES = 1024 * 1024


class Stream:
    """Iterate over it; the iteration ends after the run's last event.

    `on_delta` is told what the model is just saying, as the `agent_delta` frames have it: some of it may be missing,
    and all of it comes again as `agent_message` events.
    """

    def __init__(
        self,
        api: Api,
        run_id: str,
        *,
        after: int = 0,
        on_delta: Callable[[Json], None] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._api = api
        self._run_id = run_id
        self._on_delta = on_delta
        self._attempt = 0
        self._order = InOrder(after)
        self._sleep = sleep
        self._over = False
        self._subscribed = False
        self._gap_since: float | None = None
        self._failures = 0
        self._last_contact = time.monotonic()

    @property
    def seen(self) -> int:
        return self._order.seen

    def __iter__(self) -> Iterator[Event]:
        while not self._over:
            try:
                yield from self._from_socket()
            except (WebSocketException, OSError, Unreachable):
                yield from self._patiently_from_log()
            except ApiError as error:
                self._raise_unless_it_may_pass(error)
                yield from self._patiently_from_log()

    def _from_socket(self) -> Iterator[Event]:
        ticket = self._api.ticket()
        with connect(
            f"{ticket.websocket_url}?ticket={ticket.ticket}",
            proxy=None if is_loopback(ticket.websocket_url) else True,
            max_size=_MAX_FRAME_BYTES,
        ) as socket:
            self._subscribed = False
            self._subscribe(socket)
            yield from self._received(socket)

    def _subscribe(self, socket: ClientConnection) -> None:
        socket.send(json.dumps({"action": "subscribe", "run_id": self._run_id, "after": self.seen}))

    def _received(self, socket: ClientConnection) -> Iterator[Event]:
        while not self._over:
            try:
                frame = _frame(socket.recv(timeout=self._patience()))
            except TimeoutError:
                socket.send(json.dumps({"action": "ping"}))
                yield from self._from_log()
                continue
            yield from self._on_frame(frame)
            if frame.get("type") == "more":
                self._subscribe(socket)
            if self._gap_since is not None and self._patience() <= 0:
                yield from self._from_log()

    def _patience(self) -> float:
        if self._gap_since is None:
            return SILENCE_SECONDS
        return max(0.0, self._gap_since + GAP_SECONDS - time.monotonic())

    def _on_frame(self, frame: dict[str, Any]) -> Iterator[Event]:
        kind = frame.get("type")
        if kind is None:
            raise Unreachable(self._api.endpoint, frame.get("message"))
        self._failures = 0
        self._last_contact = time.monotonic()
        if kind == "event":
            yield from self._taken(event_of(frame["event"]))
        elif kind == "agent_delta":
            self._hear(frame)
        elif kind == "subscribed":
            self._subscribed = True
            if frame["last_seq"] <= self.seen:
                yield from self._from_log()  # nothing will be replayed, and the run may be over already
        elif kind == "error":
            error = ApiError(400, frame["error"])
            # once we follow the run, what is wrong is the connection, and a new one will do
            raise Unreachable(self._api.endpoint, error) if self._subscribed else error

    def _hear(self, delta: Json) -> None:
        """An attempt that was given up may still speak, and nobody wants to hear it."""
        if self._on_delta is not None and delta["attempt"] >= self._attempt:
            self._on_delta(delta)

    def _patiently_from_log(self) -> Iterator[Event]:
        """What the socket could not bring; then a pause that grows, so that nobody is hammered."""
        try:
            yield from self._from_log()
        except Unreachable:
            if self._patience_is_over():
                raise
        except ApiError as error:
            self._raise_unless_it_may_pass(error)
        if not self._over:
            self._sleep(_wait_seconds(self._failures))
            self._failures += 1

    def _from_log(self) -> Iterator[Event]:
        while page := self._api.events(self._run_id, after=self.seen):
            before = self.seen
            for event in page:
                yield from self._taken(event)
            if self._over or self.seen == before:
                break
        self._gap_since = None
        self._last_contact = time.monotonic()
        if not self._over:
            run = self._api.run(self._run_id)
            self._over = run["status"] in TERMINAL.values() and run["last_seq"] <= self.seen

    def _taken(self, event: Event) -> Iterator[Event]:
        ready = self._order.take(event)
        for found in ready:
            self._attempt = found.attempt
            yield found
            if found.type in TERMINAL:
                self._over = True
                return
        if not self._order.has_gap:
            self._gap_since = None
        elif ready or self._gap_since is None:  # as long as it gets smaller, the rest is on its way
            self._gap_since = time.monotonic()

    def _raise_unless_it_may_pass(self, error: ApiError) -> None:
        if not error.retryable or self._patience_is_over():
            raise error

    def _patience_is_over(self) -> bool:
        return time.monotonic() - self._last_contact > GIVE_UP_SECONDS


def _frame(text: str | bytes) -> dict[str, Any]:
    """What is no frame of ours is skipped: if it stood for an event, the log has it."""
    try:
        frame = json.loads(text)
    except ValueError:
        frame = None
    return frame if isinstance(frame, dict) else {"type": "unknown"}


def _wait_seconds(failures: int) -> float:
    longest = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0**failures)
    return longest * random.uniform(0.5, 1)  # noqa: S311 - spreads reconnecting clients, guards nothing
