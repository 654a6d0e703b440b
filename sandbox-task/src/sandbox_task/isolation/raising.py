"""One executor: how it is put up, and how it is ended together with everything behind its wall."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox_task.isolation import landlock
from sandbox_task.isolation.channel import Channel
from sandbox_task.isolation.kernel import adopt_orphans
from sandbox_task.isolation.processes import Process, below, children, send_signal, snapshot
from sandbox_task.isolation.wall import WallError
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandbox_task.isolation.launch import Launch

_PRIVILEGES = ("CapInh", "CapPrm", "CapEff", "CapAmb")


@dataclass
class Raised:
    """`first` is a handle on the first process of the namespace: with it, all that is in there ends."""

    launch: Launch
    process: subprocess.Popen[bytes]
    channel: Channel
    walls: tuple[str, ...]
    first: int | None

    @property
    def is_gone(self) -> bool:
        return self.channel.is_lost or self.process.poll() is not None

    def take_down(self) -> None:
        """When this returns, nothing that was behind the wall is alive. May be called again."""
        self.channel.close()
        if self.first is not None:
            _end_namespace(self.first)
            self.first = None
        _end(self.process)
        if not self.launch.own_namespace:
            _kill_strays(self.launch)


def put_up(launch: Launch) -> Raised:
    """Raises WallError, in the words of who could not start."""
    if not launch.own_namespace:
        adopt_orphans()
    ours, theirs = socket.socketpair()
    with theirs, tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            launch.argv, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=complaints, env=launch.env, cwd="/"
        )
        theirs.close()
        channel = Channel(ours)
        try:
            ours.sendall(launch.modules)
            if launch.take_over:
                launch.take_over(ours)
            walls = _check(channel.start()["hello"], launch)
            first = _first_inside(process.pid) if launch.own_namespace else None
            return Raised(launch, process, channel, walls, first)
        except (WallError, OSError, ValueError, KeyError) as error:
            process.kill()
            process.wait()
            channel.close()
            ours.close()
            complaints.seek(0)
            said = complaints.read(2000).decode(errors="replace").strip().splitlines()
            raise WallError(said[-1] if said else str(error)) from error


def _check(hello: Mapping[str, Any], launch: Launch) -> tuple[str, ...]:
    """Which walls stand. Nothing foreign has run yet, so what the executor says of itself is still true."""
    if any(hello[name] for name in _PRIVILEGES) or not hello["NoNewPrivs"]:
        raise WallError("commands would keep privileges")
    if hello["uid"] == 0 or (hello["uid"] == os.geteuid() and not launch.own_namespace):
        raise WallError("commands would run as the supervisor's own user")
    if "seccomp" not in hello["walls"]:
        raise WallError("commands could make every system call")
    return (launch.backend, *hello["walls"])


def _first_inside(starter: int) -> int:
    """A handle on the one child of whoever made the namespace. B can't end it: from inside no signal reaches it."""
    pids = children(starter)
    if len(pids) != 1:
        raise WallError("the namespace has no first process")
    return os.pidfd_open(pids[0])


def _end_namespace(first: int) -> None:
    """It is not over before the kernel has ended everything else in there."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(first, signal.SIGKILL)
    _await(first)
    os.close(first)


def _end(process: subprocess.Popen[bytes]) -> None:
    """It ends by itself, now that nobody is at the other end of the line."""
    if process.poll() is None:
        handle = os.pidfd_open(process.pid)
        if not _await(handle):
            process.kill()
        os.close(handle)
    process.wait()


def _await(handle: int) -> bool:
    """`Popen.wait` with a timeout looks ever more seldom, and would be most of the time that this takes."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(limits.KILL_SECONDS * 1000))


def _kill_strays(launch: Launch) -> None:
    """Without a pid namespace, what a dead executor leaves behind has become A's own descendant."""
    if not landlock.knows_scopes():  # then no broker could see to it, and /proc does not show all
        subprocess.run(launch.end_worker, env={}, cwd="/", capture_output=True, check=False)
    deadline = time.monotonic() + limits.KILL_SECONDS
    while (strays := _strays()) and time.monotonic() < deadline:
        send_signal(strays, signal.SIGSTOP)
        send_signal([*strays, *_strays()], signal.SIGKILL)
        time.sleep(0.002)


def _strays() -> list[Process]:
    """Those that are alive. Of those that have ended nobody else takes notice; our own children have somebody who
    started them and who waits for them."""
    found = [stray for stray in below(os.getpid(), snapshot()) if _owner(stray.pid) not in (None, os.geteuid())]
    for stray in found:
        if stray.is_over and stray.parent == os.getpid():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(stray.pid, os.WNOHANG)
    return [stray for stray in found if not stray.is_over]


def _owner(pid: int) -> int | None:
    """Not the owner of its place in /proc, which is root for a process that is closed to others."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(status.partition("\nUid:")[2].split()[0])
