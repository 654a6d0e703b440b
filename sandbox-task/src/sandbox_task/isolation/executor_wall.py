"""A wall with one executor behind it; a new one is put up when the old one is gone."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sandbox_task.isolation.launch import in_terminal
from sandbox_task.isolation.raising import put_up
from sandbox_task.isolation.running import Running
from sandbox_task.isolation.wall import Completed, FilePart, OutputSink, Process, WallError, WallLost
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sandbox_task.isolation.channel import Channel
    from sandbox_task.isolation.launch import Launch

_SHELL = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"


class ExecutorWall:
    def __init__(self, launch: Launch) -> None:
        self.backend = launch.backend
        self.workspace = launch.workspace
        self._launch = launch
        self._raising = threading.RLock()
        self._lock = threading.Lock()
        self._running: set[Running] = set()
        self._in_background: set[Running] = set()
        self._raised = put_up(launch)
        self.walls = self._raised.walls

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
                channel = self._raised.channel
                answer = channel.request("kill_all", {})
            channel.finish(answer)
        except WallError:
            self.close()
        self._await_background()

    def close(self) -> None:
        with self._raising:
            self._raised.take_down()
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
            if self._raised.is_gone:
                self.close()
                self._raised = put_up(self._launch)
                self.walls = self._raised.walls
            return self._raised.channel

    def _await_background(self) -> None:
        """So that everything they said has been handed on."""
        deadline = time.monotonic() + limits.KILL_SECONDS
        while self._in_background and time.monotonic() < deadline:
            time.sleep(0.002)
