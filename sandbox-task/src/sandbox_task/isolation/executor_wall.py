"""A wall with one executor behind it; a new one is put up when the old one is gone."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sandbox_task.isolation import landlock, processes
from sandbox_task.isolation.channel import Channel
from sandbox_task.isolation.kernel import adopt_orphans
from sandbox_task.isolation.launch import in_terminal
from sandbox_task.isolation.running import Running
from sandbox_task.isolation.wall import Completed, FilePart, OutputSink, Process, WallError, WallLost
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sandbox_task.isolation.launch import Launch

_SHELL = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
_PRIVILEGES = ("CapInh", "CapPrm", "CapEff", "CapAmb")


class ExecutorWall:
    def __init__(self, launch: Launch) -> None:
        self.backend = launch.backend
        self.workspace = launch.workspace
        self._launch = launch
        self._raising = threading.RLock()
        self._lock = threading.Lock()
        self._running: set[Running] = set()
        self._in_background: set[Running] = set()
        if not launch.own_namespace:
            adopt_orphans()
        self._process, self._channel, self.walls = _start(launch)

    def run(
        self,
        command: str,
        *,
        cwd: str = ".",
        timeout: float,
        on_output: OutputSink,
        stdin: IO[bytes] | None = None,
        terminal: bool = False,
    ) -> Completed:
        running = self._begin(self._command(command, cwd, terminal=terminal), on_output, stdin)
        try:
            return running.follow(timeout=timeout)
        finally:
            self._running.discard(running)

    def start(
        self,
        command: str,
        *,
        cwd: str = ".",
        on_output: OutputSink,
        on_end: Callable[[], None],
        stdin: IO[bytes] | None = None,
        terminal: bool = False,
    ) -> Process:
        running = self._begin(self._command(command, cwd, terminal=terminal), on_output, stdin)
        self._in_background.add(running)

        def ended() -> None:
            self._running.discard(running)
            on_end()
            self._in_background.discard(running)

        running.follow_in_background(ended)
        return running

    def read_file(self, path: str, *, offset: int = 0, limit: int) -> FilePart:
        answer = self._ask("read", {"path": path, "offset": offset, "limit": limit})
        try:
            data, size = base64.b64decode(answer["data"], validate=True), int(answer["size"])
        except (KeyError, ValueError, TypeError, binascii.Error) as error:
            raise WallError(f"{path} could not be read") from error
        if len(data) > limit or not 0 <= size <= limits.MAX_FILE_SIZE:
            raise WallError(f"{path} could not be read")
        return FilePart(data, size)

    def write_file(self, path: str, data: bytes) -> None:
        self._ask("write", {"path": path, "data": data})

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        channel = self._standing()
        try:
            channel.ask("hold", {})
            yield
        finally:
            with contextlib.suppress(WallError):  # who is gone holds nothing
                channel.ask("release", {})

    def interrupt(self) -> None:
        self.end_all()

    def end_all(self) -> None:
        """Ask the executor; if it does not obey, take down the wall, which ends everything behind it."""
        try:
            with self._lock:
                for running in self._running:
                    running.note_end()
                channel = self._channel
                answer = channel.request("kill_all", {})
            channel.finish(answer)
        except WallError:
            self.close()
        self._await_background()

    def close(self) -> None:
        with self._raising:
            self._channel.close()
            try:
                self._process.wait(limits.KILL_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._kill_strays()
        self._await_background()

    def _command(self, command: str, cwd: str, *, terminal: bool) -> dict[str, Any]:
        fields = {"argv": [_SHELL, "-c", command], "cwd": str(Path(self.workspace, cwd)), "env": self._launch.env}
        if not terminal:
            return fields
        size = (limits.TERMINAL_ROWS, limits.TERMINAL_COLUMNS)
        return {**fields, "env": in_terminal(self._launch.env), "terminal": size}

    def _begin(self, fields: Mapping[str, Any], on_output: OutputSink, stdin: IO[bytes] | None) -> Running:
        try:
            return self._send_off(fields, on_output, stdin)
        except WallLost:
            # It had died without our knowing, so nothing of this was begun.
            return self._send_off(fields, on_output, stdin)

    def _send_off(self, fields: Mapping[str, Any], on_output: OutputSink, stdin: IO[bytes] | None) -> Running:
        channel = self._standing()
        output, theirs = os.pipe2(os.O_CLOEXEC)
        os.fchmod(theirs, 0o666)  # it is A's, and whoever writes to /dev/stderr opens it anew as B
        try:
            with self._lock:
                answer = channel.request("start", fields, [theirs] if stdin is None else [theirs, stdin.fileno()])
                running = Running(channel, answer, output, on_output, self.end_all)
                self._running.add(running)
        except WallError:
            os.close(output)
            raise
        finally:
            os.close(theirs)
        return running

    def _ask(self, op: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._standing().ask(op, {"root": self.workspace, **fields})

    def _standing(self) -> Channel:
        """The way to the executor, put up anew if the old one is gone."""
        with self._raising:
            if self._channel.is_lost or self._process.poll() is not None:
                self.close()
                self._process, self._channel, self.walls = _start(self._launch)
            return self._channel

    def _await_background(self) -> None:
        """So that everything they said has been handed on."""
        deadline = time.monotonic() + limits.KILL_SECONDS
        while self._in_background and time.monotonic() < deadline:
            time.sleep(0.002)

    def _kill_strays(self) -> None:
        """Without a pid namespace, what a dead executor leaves behind has become A's own descendant."""
        if self._launch.own_namespace:
            return
        if not landlock.knows_scopes():  # then no broker could see to it, and /proc does not show all
            subprocess.run(self._launch.end_worker, env={}, cwd="/", capture_output=True, check=False)
        deadline = time.monotonic() + limits.KILL_SECONDS
        while (strays := _strays()) and time.monotonic() < deadline:
            processes.send_signal(strays, signal.SIGSTOP)
            processes.send_signal([*strays, *_strays()], signal.SIGKILL)
            time.sleep(0.002)
        _reap_strays()


def _start(launch: Launch) -> tuple[subprocess.Popen[bytes], Channel, tuple[str, ...]]:
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
        except (WallError, OSError, ValueError, KeyError) as error:
            process.kill()
            process.wait()
            channel.close()
            ours.close()
            complaints.seek(0)
            said = complaints.read(2000).decode(errors="replace").strip().splitlines()
            raise WallError(said[-1] if said else str(error)) from error
    return process, channel, walls


def _check(hello: Mapping[str, Any], launch: Launch) -> tuple[str, ...]:
    """Which walls stand. Nothing foreign has run yet, so what the executor says of itself is still true."""
    if any(hello[name] for name in _PRIVILEGES) or not hello["NoNewPrivs"]:
        raise WallError("commands would keep privileges")
    if hello["uid"] == 0 or (hello["uid"] == os.geteuid() and not launch.own_namespace):
        raise WallError("commands would run as the supervisor's own user")
    if "seccomp" not in hello["walls"]:
        raise WallError("commands could make every system call")
    return (launch.backend, *hello["walls"])


def _strays() -> list[processes.Process]:
    return [stray for stray in processes.descendants(os.getpid()) if _owner(stray.pid) not in (None, os.geteuid())]


def _reap_strays() -> None:
    """Those that were killed, and those that ended unseen: nobody else waits for them. Our own children are waited for
    by whoever started them."""
    for process in processes.processes(ended=True):
        if process.parent == os.getpid() and _owner(process.pid) not in (None, os.geteuid()):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def _owner(pid: int) -> int | None:
    """Not the owner of its place in /proc, which is root for a process that is closed to others."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(status.partition("\nUid:")[2].split()[0])
