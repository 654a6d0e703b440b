"""System calls of B that wait for an answer: the kernel's side of the broker, by ioctl.

Part of what is given to B's interpreter as text (see `executor`): standard library only, Python 3.9.
"""

from __future__ import annotations

import fcntl
import struct

from sandbox_task.isolation.record import Record
from sandbox_task.isolation.slim import os, suppress

_RECEIVE, _SEND, _STILL_VALID, _ADD_FD = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_REPLACE = 1
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")


class Notification(Record):
    """A call that waits. `task` is the thread that made it."""

    number: int
    task: int
    arguments: tuple[int, ...]


def receive(listener: int) -> Notification:
    """Raises OSError if the caller was ended meanwhile."""
    buffer = bytearray(_NOTIFICATION.size)
    fcntl.ioctl(listener, _RECEIVE, buffer)
    number, task, _flags, _call, _architecture, _ip, *arguments = _NOTIFICATION.unpack(buffer)
    return Notification(number, task, tuple(arguments))


def is_valid(listener: int, notification: Notification) -> bool:
    """Whether it still waits: only then is what was read of the task really the caller's."""
    try:
        fcntl.ioctl(listener, _STILL_VALID, struct.pack("=Q", notification.number))
    except OSError:
        return False
    return True


def replace_descriptor(listener: int, notification: Notification, ours: int, *, close_on_exec: bool) -> None:
    """Put a file of ours in the place of the one that the call is about."""
    place = notification.arguments[0] & 0xFFFFFFFF
    flags = os.O_CLOEXEC if close_on_exec else 0
    fcntl.ioctl(listener, _ADD_FD, struct.pack("=QIIII", notification.number, _REPLACE, ours, place, flags))


def answer(listener: int, notification: Notification, error: int) -> None:
    with suppress(OSError):  # nobody waits any more
        fcntl.ioctl(listener, _SEND, struct.pack("=QqiI", notification.number, 0, -error, 0))
