"""A wall whose commands are ended when they use up the disk or the memory, and cut short when they talk without end."""

from __future__ import annotations

import threading
from typing import IO, TYPE_CHECKING

from sandbox_task.isolation.wall import Completed, FilePart, OutputSink, Process, Wall, WallError
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from sandbox_task.isolation.bounds.disk import Disk
    from sandbox_task.isolation.bounds.memory import Memory


class BoundedWall:
    def __init__(
        self, wall: Wall, disk: Disk, memory: Memory, *, output_bytes: int = limits.COMMAND_OUTPUT_BYTES
    ) -> None:
        self.backend, self.walls, self.workspace = wall.backend, wall.walls, wall.workspace
        self._wall, self._disk, self._output_bytes = wall, disk, output_bytes
        self._endings: list[str] = []
        self._closed = threading.Event()
        for bound, seconds in ((disk, limits.WALL_DISK_LOOK_SECONDS), (memory, limits.WALL_MEMORY_LOOK_SECONDS)):
            threading.Thread(target=self._watch, args=(bound, seconds), name="bounds", daemon=True).start()

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
        output = _Output(on_output, self._output_bytes)
        before = len(self._endings)
        done = self._wall.run(command, cwd=cwd, timeout=timeout, on_output=output.feed, stdin=stdin, terminal=terminal)
        self._explain(before, on_output)
        return done

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
        output = _Output(on_output, self._output_bytes)
        before = len(self._endings)

        def ended() -> None:
            self._explain(before, on_output)
            on_end()

        return self._wall.start(command, cwd=cwd, on_output=output.feed, on_end=ended, stdin=stdin, terminal=terminal)

    def read_file(self, path: str, *, offset: int = 0, limit: int) -> FilePart:
        return self._wall.read_file(path, offset=offset, limit=limit)

    def write_file(self, path: str, data: bytes) -> None:
        if self._disk.is_full:
            raise WallError("The disk is full: remove what is not needed first.")
        self._wall.write_file(path, data)

    def standing_still(self) -> AbstractContextManager[None]:
        return self._wall.standing_still()

    def interrupt(self) -> None:
        self._wall.interrupt()

    def end_all(self) -> None:
        self._wall.end_all()

    def close(self) -> None:
        self._closed.set()
        self._wall.close()

    def _watch(self, bound: Disk | Memory, seconds: float) -> None:
        while not self._closed.wait(seconds):
            if complaint := bound.complaint():
                self._endings.append(complaint)
                self._wall.end_all()

    def _explain(self, before: int, on_output: OutputSink) -> None:
        """To the one who reads the output: why the command ended."""
        if len(self._endings) > before:
            on_output(f"\n[{self._endings[-1]}]\n".encode())


class _Output:
    """Hands on a first part, of a size that nobody reads to its end; the command itself goes on."""

    def __init__(self, on_output: OutputSink, at_most: int) -> None:
        self._on_output, self._left = on_output, at_most
        self._at_most = at_most

    def feed(self, data: bytes) -> None:
        if self._left <= 0:
            return
        self._on_output(data[: self._left])
        self._left -= len(data)
        if self._left <= 0:
            self._on_output(f"\n[Output beyond {self._at_most // 1024**2} MiB is dropped.]\n".encode())
