"""The input of a process behind the wall, which may never read it."""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Feed:
    """`taken` gives the process its end, once; what is sent before it is there waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._theirs, ours = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(ours, False)
        self._ours: int | None = ours

    @contextmanager
    def taken(self) -> Iterator[IO[bytes]]:
        with os.fdopen(self._theirs, "rb") as stdin:
            yield stdin

    def send(self, data: bytes, *, seconds: float) -> bool:
        """Whether all of it was taken in that time."""
        deadline = time.monotonic() + seconds
        with self._lock:
            while data and (ours := self._with_room(deadline - time.monotonic())) is not None:
                try:
                    data = data[os.write(ours, data) :]
                except BrokenPipeError:
                    return False
        return not data

    def close(self) -> None:
        with self._lock:
            if self._ours is not None:
                os.close(self._ours)
            self._ours = None

    def _with_room(self, seconds: float) -> int | None:
        if self._ours is None or seconds <= 0:
            return None
        poll = select.poll()
        poll.register(self._ours, select.POLLOUT)
        return self._ours if poll.poll(seconds * 1000) else None
