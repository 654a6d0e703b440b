"""Ending processes for good on Linux. Standard library only: the guardian and every task start through here."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.02

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def become_subreaper() -> None:
    """Orphans below this process become its children, so that none gets out of sight."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int, signum: signal.Signals) -> Callable[[], None]:
    """A `preexec_fn`; see `end_with_parent`."""

    def before_exec() -> None:
        end_with_parent(parent, signum)

    return before_exec


def end_with_parent(parent: int, signum: signal.Signals) -> None:
    """The kernel sends us `signum` when the parent's thread that spawned us ends, however that happens."""
    _prctl(PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        os._exit(1)


@contextlib.contextmanager
def child_signals() -> Iterator[socket.socket]:
    """A socket that becomes readable when a child ends. Signals are as before in who leaves, also by a fork."""
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.settimeout(0)
        writer.settimeout(0)
        signal.set_wakeup_fd(writer.fileno())
        before = signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            yield reader
        finally:
            signal.signal(signal.SIGCHLD, before)
            signal.set_wakeup_fd(-1)


def show_as(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """What others see of this process under /proc, and so in `ps`. It was forked: the kernel knows its parent's."""
    after_name = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    arguments_begin, arguments_end, environment_begin, environment_end = map(int, after_name[45:49])
    _overwrite(arguments_begin, arguments_end, arguments)
    _overwrite(environment_begin, environment_end, [f"{name}={value}" for name, value in environment.items()])


def _overwrite(begin: int, end: int, words: Sequence[str]) -> None:
    room = end - begin - 1  # the last byte stays zero
    text = b"\0".join(word.encode() for word in words)[:room]
    ctypes.memmove(begin, text.ljust(room, b"\0"), room)


def descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _parents() -> Iterator[tuple[int, int]]:
    """Every process there is, and its parent."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - every task that ends comes by here; paths would take most of it
        if name.isdigit() and (parent := _parent_of(name)) is not None:
            yield int(name), parent


def _parent_of(pid: str) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - likewise
            stat = file.read()
    except OSError:
        return None  # it ended while we looked
    # the name in parentheses may itself contain spaces and parentheses
    return int(stat.rpartition(b")")[2].split()[1])


def reap() -> dict[int, int]:
    """Collect every child that has ended: exit codes by pid, 128 + n for signal n as containers report it."""
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0] != 0:
            code = os.waitstatus_to_exitcode(found[1])
            ended[found[0]] = code if code >= 0 else 128 - code
    return ended


def signal_all(pids: list[int], signum: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)


def end_descendants(grace_seconds: float) -> None:
    """SIGTERM to the children, time to tidy up, then SIGKILL to whatever is left, until nothing is.

    Call it in a subreaper only: elsewhere an orphan escapes to init while its parent is being killed. Here it turns up
    among the children, and is asked in its turn.
    """
    me = os.getpid()
    asked: set[int] = set()
    deadline = time.monotonic() + grace_seconds
    while _has_children() and time.monotonic() < deadline:
        children = _children(me)
        signal_all([child for child in children if child not in asked], signal.SIGTERM)
        asked.update(children)
        time.sleep(_POLL_SECONDS)
    while _has_children():
        signal_all(descendants(me), signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def _has_children() -> bool:
    """Who has none that live has no descendants either: most who ask, and /proc need not be read for them."""
    reap()
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _children(pid: int) -> list[int]:
    return [child for child, parent in _parents() if parent == pid]
