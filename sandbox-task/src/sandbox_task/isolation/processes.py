"""Processes as /proc shows them, for A and for the executor, which is given this file as text (see there)."""

# Importing pathlib would be half of the time that the wall takes to go up.
# ruff: noqa: PTH123, PTH208

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None)


class Process(NamedTuple):
    pid: int
    parent: int
    group: int


def processes(*, ended: bool = False) -> Iterator[Process]:
    """Every live process that this one can see; or those that have ended and that nobody has waited for."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                state, parent, group = file.read().rpartition(b")")[2].split()[:3]
                if (state == b"Z") == ended:
                    yield Process(int(name), int(parent), int(group))


def descendants(root: int) -> list[Process]:
    children: dict[int, list[Process]] = {}
    for process in processes():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += [process.pid for process in below]
    return found


def everything_else() -> list[Process]:
    """In a pid namespace of its own: all but the namespace's init and this process. One signal reaches them at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(-1, signal.SIGKILL)
    return others()


def others() -> list[Process]:
    """In a pid namespace of its own: all but the namespace's init and this process."""
    return [process for process in processes() if process.pid not in (1, os.getpid())]


def stands_still(process: Process) -> bool:
    """Stopped, or gone."""
    try:
        with open(f"/proc/{process.pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"Z", b"X")
    except OSError:
        return True


def send_signal(targets: list[Process], number: int) -> None:
    """To each, and to their groups: a group gets it at once, also those who are only just being born into it."""
    own = os.getpgid(0)
    for group in {process.group for process in targets} - {own, 0}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    for process in targets:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


def adopt_orphans() -> None:
    """A process whose parent ends becomes this one's child, and not that of somebody who can't find it."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def close_to_others() -> None:
    """Processes of the same user can end this one, but neither read its memory nor use its descriptors."""
    LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
