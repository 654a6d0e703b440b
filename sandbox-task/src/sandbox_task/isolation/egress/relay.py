"""Bytes between two sockets, both ways, without copying them through this process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

# Most is downloaded. Those of all connections are about what the kernel grants a user (64 MB); who gets less is slower.
_UP_BYTES, _DOWN_BYTES = 1 << 16, 1 << 20
_MOST_BYTES = 1 << 22  # a pipe holds pages by number, and what one of them refers to can be 32 KB
_CLIENT_BYTES = 1 << 18  # on its way to a client of this machine: what is still in a processor's cache when it is read


def relay(client: socket.socket, upstream: socket.socket) -> None:
    """Until both have said all, or for too long nothing; one that says no more can still listen."""
    client.settimeout(0)
    upstream.settimeout(0)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _CLIENT_BYTES)
    deadline = time.monotonic() + limits.EGRESS_TOTAL_SECONDS
    with _flow(client, upstream, _UP_BYTES) as there, _flow(upstream, client, _DOWN_BYTES) as back:
        flows = (there, back)
        while any(flow.is_open for flow in flows) and time.monotonic() < deadline:
            if not _wait(flows):
                return
            for flow in flows:
                flow.move()


@contextmanager
def _flow(source: socket.socket, target: socket.socket, pipe_bytes: int) -> Iterator[_Flow]:
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        with contextlib.suppress(PermissionError):
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, pipe_bytes)
        yield _Flow(source, target, reader, writer)
    finally:
        os.close(reader)
        os.close(writer)


class _Flow:
    """One direction. What has come and not yet gone is held in a pipe of the kernel's."""

    def __init__(self, source: socket.socket, target: socket.socket, reader: int, writer: int) -> None:
        self.source, self.target = source, target
        self._reader, self._writer = reader, writer
        self.held = 0
        self.ended = False
        self.is_open = True

    @property
    def wants_more(self) -> bool:
        return not self.ended and not self.held

    def move(self) -> None:
        if self.wants_more:
            self._take()
        if self.held:
            self._give()
        if self.ended and not self.held and self.is_open:
            self.is_open = False
            _shut_down(self.target)

    def _take(self) -> None:
        try:
            self.held = os.splice(self.source.fileno(), self._writer, _MOST_BYTES)
        except BlockingIOError:
            return
        self.ended = self.held == 0

    def _give(self) -> None:
        try:
            self.held -= os.splice(self._reader, self.target.fileno(), self.held)
        except BlockingIOError:
            return


def _wait(flows: tuple[_Flow, _Flow]) -> bool:
    """For something to move; False if nothing did for too long."""
    events: dict[int, int] = {}
    for flow in flows:
        if flow.wants_more:
            events[flow.source.fileno()] = events.get(flow.source.fileno(), 0) | select.POLLIN
        if flow.held:
            events[flow.target.fileno()] = events.get(flow.target.fileno(), 0) | select.POLLOUT
    poll = select.poll()
    for fd, mask in events.items():
        poll.register(fd, mask)
    return bool(poll.poll(limits.EGRESS_IDLE_SECONDS * 1000))


def _shut_down(target: socket.socket) -> None:
    try:
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the other side is gone already
