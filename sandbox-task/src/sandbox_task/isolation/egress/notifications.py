"""System calls of B that wait for an answer: the kernel's side of the broker, by ctypes and ioctl.

Part of what is given to B's interpreter as text (see `executor`): standard library only, Python 3.9.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import struct

from sandbox_task.isolation.egress.socket_filter import Unsupported, calls, program
from sandbox_task.isolation.record import Record

_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5
_RECEIVE, _SEND, _STILL_VALID, _ADD_FD = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_REPLACE = 1
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
LIBC = ctypes.CDLL(None, use_errno=True)


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


class Notification(Record):
    """A call that waits. `task` is the thread that made it."""

    number: int
    task: int
    arguments: tuple[int, ...]


def install() -> int:
    """From here on this process and all that it starts are filtered, for good. The end where its calls arrive."""
    LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    names = calls()
    steps = program(names)
    wanted = Program(len(steps) // 8, steps)
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):  # the better one is not in every kernel
        listener = LIBC.syscall(names.seccomp, _SET_MODE_FILTER, flags, ctypes.byref(wanted))
        if listener >= 0:
            return int(listener)
    problem = os.strerror(ctypes.get_errno())
    raise Unsupported(f"the kernel can't close the network to commands: seccomp notifications are refused ({problem})")


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
    with contextlib.suppress(OSError):  # nobody waits any more
        fcntl.ioctl(listener, _SEND, struct.pack("=QqiI", notification.number, 0, -error, 0))
