"""Why a run must stop before its work is done: said once, seen by every thread."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Reason = Literal["cancelled", "timed_out", "fenced", "terminated", "paused"]


class Stopped(Exception):
    """Raised where work is in hand when the run has to stop."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


class Stop:
    """The first reason wins, except that being fenced overrides all: then nothing may be written any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set, self._told = threading.Event(), threading.Event()
        self._reason: Reason | None = None
        self._since: float | None = None
        self._listeners: list[Callable[[], None]] = []

    @property
    def reason(self) -> Reason | None:
        return self._reason

    @property
    def seconds_ago(self) -> float:
        """How long the work has known that it must stop."""
        return 0.0 if self._since is None else time.monotonic() - self._since

    @property
    def is_fenced(self) -> bool:
        return self._reason == "fenced"

    def request(self, reason: Reason) -> None:
        with self._lock:
            if self._reason is None or reason == "fenced":
                self._reason = reason
            self._since = self._since or time.monotonic()
            self._set.set()
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()
        self._told.set()

    def settle(self) -> None:
        """Returns when whoever listens has been told, so that nothing which begins now is broken off by it."""
        self._told.wait()

    @contextmanager
    def listening(self, listener: Callable[[], None]) -> Iterator[None]:
        """Calls `listener` at a request that comes meanwhile, or now if there was one."""
        with self._lock:
            self._listeners.append(listener)
        if self._set.is_set():
            listener()
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)

    def check(self) -> None:
        if self._reason is not None:
            raise Stopped(self._reason)

    def wait(self, seconds: float) -> bool:
        return self._set.wait(seconds)
