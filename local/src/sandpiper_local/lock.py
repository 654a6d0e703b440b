"""One stack per state directory: a lock that the kernel gives back when `up` and its guardian are gone."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from typing import TYPE_CHECKING, Any

from sandpiper_local.errors import AlreadyRunning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandpiper_local.paths import StateDir

_TIDYING_SECONDS = 15
_POLL_SECONDS = 0.1


@contextlib.contextmanager
def hold(state: StateDir, api_url: str) -> Iterator[int]:
    """The lock as a file descriptor, to be inherited. Raises AlreadyRunning."""
    state.create()
    descriptor = os.open(state.lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _acquire(descriptor, state)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "api_url": api_url}).encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, state: StateDir) -> None:
    """If `up` was killed, its guardian still holds the lock while it tidies up: worth a short wait."""
    deadline = time.monotonic() + _TIDYING_SECONDS
    while not _try_lock(descriptor):
        holder = read_holder(state)
        if holder is not None and (_is_alive(holder["pid"]) or time.monotonic() > deadline):
            raise AlreadyRunning(holder["pid"], holder["api_url"])
        time.sleep(_POLL_SECONDS)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(state: StateDir) -> bool:
    if not state.lock.exists():
        return False
    descriptor = os.open(state.lock, os.O_RDWR)
    try:
        return not _try_lock(descriptor)
    finally:
        os.close(descriptor)


def read_holder(state: StateDir) -> dict[str, Any] | None:
    """None while the holder has not yet written who it is."""
    try:
        holder: dict[str, Any] = json.loads(state.lock.read_text())
    except ValueError:
        return None
    return holder


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
