"""Connections of B that A answers: a thread for each, up to a bound."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE_SECONDS = 0.01


class Server:
    """`handle` may leave its connection in any state: it is closed here and nowhere else."""

    def __init__(self, name: str, handle: Callable[[socket.socket], None], *, at_most: int, when_full: bytes) -> None:
        self._name, self._handle, self._when_full = name, handle, when_full
        self._free = threading.BoundedSemaphore(at_most)
        self._lock = threading.Lock()
        self._listeners: dict[socket.socket, threading.Thread] = {}
        self._connections: dict[socket.socket, threading.Thread] = {}

    def serve(self, listener: socket.socket) -> None:
        """Answer what comes in there, until it is dropped or the server is closed."""
        thread = threading.Thread(target=self._accept, args=(listener,), name=self._name, daemon=True)
        with self._lock:
            self._listeners[listener] = thread
        thread.start()

    def drop(self, listener: socket.socket) -> None:
        with self._lock:
            thread = self._listeners.pop(listener)
        _wake(listener)
        thread.join()
        listener.close()

    def close(self) -> None:
        for listener in tuple(self._listeners):
            self.drop(listener)
        with self._lock:
            connections = dict(self._connections)
        for connection in connections:
            _wake(connection)
        for thread in connections.values():
            thread.join()

    def _accept(self, listener: socket.socket) -> None:
        while listener in self._listeners:
            try:
                connection, _ = listener.accept()
            except OSError:  # it was dropped, or there is no descriptor left for the moment
                if listener in self._listeners:
                    time.sleep(_PAUSE_SECONDS)
                continue
            if self._free.acquire(blocking=False):
                self._start(connection)
            else:
                with connection, contextlib.suppress(OSError):
                    connection.send(self._when_full, socket.MSG_DONTWAIT)

    def _start(self, connection: socket.socket) -> None:
        thread = threading.Thread(target=self._attend, args=(connection,), name=self._name, daemon=True)
        with self._lock:
            self._connections[connection] = thread
        thread.start()

    def _attend(self, connection: socket.socket) -> None:
        try:
            with connection, contextlib.suppress(OSError):
                self._handle(connection)
        finally:
            with self._lock:
                del self._connections[connection]
            self._free.release()


def _wake(sock: socket.socket) -> None:
    """Whoever waits at it, waits no longer."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
