"""A wall with one executor behind it; a new one is put up when the old one is gone."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sandbox_task.isolation.channel import Answer, Channel
from sandbox_task.isolation.executor import adopt_orphans, descendants
from sandbox_task.isolation.wall import Completed, Ending, FilePart, OutputSink, WallError, WallLost
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandbox_task.isolation.launch import Launch

_SHELL = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
_PRIVILEGES = ("CapInh", "CapPrm", "CapEff", "CapAmb")


class ExecutorWall:
    def __init__(self, launch: Launch) -> None:
        self.backend = launch.backend
        self.workspace = launch.workspace
        self._launch = launch
        self._interrupted = threading.Event()
        if not launch.own_namespace:
            adopt_orphans()
        self._process, self._channel = _start(launch)

    def run(
        self,
        command: str,
        *,
        cwd: str = ".",
        timeout: float,
        on_output: OutputSink,
        stdin: IO[bytes] | None = None,
    ) -> Completed:
        self._restore()
        started = time.monotonic()
        output, theirs = os.pipe2(os.O_CLOEXEC)
        try:
            answer = self._begin(command, cwd, theirs, stdin)
        except WallError:
            os.close(output)
            raise
        finally:
            os.close(theirs)
        try:
            code, ending = self._follow(answer, output, on_output, started + timeout)
        finally:
            os.close(output)
            self._channel.forget(answer)
        return Completed(code, ending, round((time.monotonic() - started) * 1000))

    def read_file(self, path: str, *, offset: int = 0, limit: int) -> FilePart:
        answer = self._ask("read", {"path": path, "offset": offset, "limit": limit})
        try:
            return FilePart(base64.b64decode(answer["data"], validate=True), int(answer["size"]))
        except (KeyError, ValueError, TypeError, binascii.Error) as error:
            raise WallError(f"{path} could not be read") from error

    def write_file(self, path: str, data: bytes) -> None:
        self._ask("write", {"path": path, "data": base64.b64encode(data).decode()})

    def interrupt(self) -> None:
        self._interrupted.set()
        self.end_all()

    def end_all(self) -> None:
        """Ask the executor; if it does not obey, take down the wall, which ends everything behind it."""
        try:
            self._channel.ask("kill_all", {})
        except WallError:
            self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._channel.close()
        try:
            self._process.wait(limits.KILL_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._kill_strays()

    def _begin(self, command: str, cwd: str, output: int, stdin: IO[bytes] | None) -> Answer:
        fields = {
            "argv": [_SHELL, "-c", command],
            "cwd": str(Path(self.workspace, cwd)),
            "env": self._launch.env,
        }
        self._interrupted.clear()
        fds = [output] if stdin is None else [output, stdin.fileno()]
        return self._channel.request("start", fields, fds)

    def _follow(self, answer: Answer, output: int, on_output: OutputSink, deadline: float) -> tuple[int | None, Ending]:
        """Hand on output until the command has ended or has been ended."""
        os.set_blocking(output, False)
        poll = select.poll()
        poll.register(output, select.POLLIN)
        poll.register(answer.fd, select.POLLIN)
        while (left := deadline - time.monotonic()) > 0:
            ready = {fd for fd, _ in poll.poll(left * 1000)}
            if output in ready and not _drain(output, on_output, at_most=1 << 20):
                poll.unregister(output)
            if answer.fd in ready:
                _drain(output, on_output)
                return self._ending(answer)
        self.end_all()
        with contextlib.suppress(WallLost):
            answer.wait(limits.KILL_SECONDS)
        _drain(output, on_output)
        return None, "timeout"

    def _ending(self, answer: Answer) -> tuple[int | None, Ending]:
        try:
            code = answer.wait(0).get("exit")
        except WallLost:
            return None, "interrupt" if self._interrupted.is_set() else "wall_lost"
        if self._interrupted.is_set():
            return None, "interrupt"
        return (code if isinstance(code, int) else None), "itself"

    def _ask(self, op: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        self._restore()
        return self._channel.ask(op, {"root": self.workspace, **fields})

    def _restore(self) -> None:
        if self._channel.is_lost or self._process.poll() is not None:
            self.close()
            self._process, self._channel = _start(self._launch)

    def _kill_strays(self) -> None:
        """Without a pid namespace, what a dead executor leaves behind has become A's own descendant."""
        if self._launch.own_namespace:
            return
        for pid in [pid for pid in descendants(os.getpid()) if _owner(pid) not in (None, os.geteuid())]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _start(launch: Launch) -> tuple[subprocess.Popen[bytes], Channel]:
    ours, theirs = socket.socketpair()
    with theirs, tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            launch.argv, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=complaints, env=launch.env, cwd="/"
        )
        theirs.close()
        channel = Channel(ours)
        try:
            _check(channel.start()["hello"], launch)
        except (WallError, OSError, ValueError, KeyError) as error:
            process.kill()
            process.wait()
            ours.close()
            complaints.seek(0)
            said = complaints.read(2000).decode(errors="replace").strip().splitlines()
            raise WallError(said[-1] if said else str(error)) from error
    return process, channel


def _check(hello: Mapping[str, int], launch: Launch) -> None:
    """Nothing foreign has run yet, so what the executor says of itself is still true."""
    if any(hello[name] for name in _PRIVILEGES) or not hello["NoNewPrivs"]:
        raise WallError("commands would keep privileges")
    if hello["uid"] == 0 or (hello["uid"] == os.geteuid() and not launch.own_namespace):
        raise WallError("commands would run as the supervisor's own user")


def _drain(fd: int, on_output: OutputSink, *, at_most: int | None = None) -> bool:
    """Hand on what is there now; False at the end of the stream."""
    taken = 0
    while at_most is None or taken < at_most:
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return True
        if not data:
            return False
        taken += len(data)
        on_output(data)
    return True


def _owner(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None
