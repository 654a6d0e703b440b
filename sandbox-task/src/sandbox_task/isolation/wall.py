"""The wall, as the rest of the sandbox sees it: everything that a model or a repository decides happens behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

OutputSink = Callable[[bytes], None]
Ending = Literal["itself", "timeout", "interrupt", "wall_lost"]


class WallError(Exception):
    """The wall can't be put up, or something behind it can't be done; in words."""


class WallLost(WallError):
    """What is behind the wall answers no more."""


@dataclass(frozen=True)
class Completed:
    """How a command ended. `exit_code` is None when it did not end by itself."""

    exit_code: int | None
    ended_by: Ending
    duration_ms: int

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0


@dataclass(frozen=True)
class FilePart:
    data: bytes
    size: int


class Process(Protocol):
    """A command that runs in the background."""

    def wait(self, seconds: float) -> Completed | None:
        """How it ended, if it has by then. Raises WallError if it could not start."""

    def interrupt(self) -> None:
        """What Ctrl-C does. Raises WallError."""

    def end(self) -> None:
        """Kill it and everything that it has started, and nothing else."""


class Wall(Protocol):
    """Used from several threads at once; each command has its own output and its own end."""

    backend: str
    walls: tuple[str, ...]  # the backend, and what it could add: the log says what a run was held by
    workspace: str  # where commands find it, which is not always where A does

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
        """Run a shell command in `cwd` of the workspace. At `timeout` it is killed, and everything that it started.

        With `terminal` it has one of its own: `stdin` is what is typed there, and its end is Ctrl-D."""

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
        """The same in the background. `on_output` and, at last, `on_end` are called by a thread of its own."""

    def read_file(self, path: str, *, offset: int = 0, limit: int) -> FilePart:
        """Raises WallError in words."""

    def write_file(self, path: str, data: bytes) -> None:
        """Raises WallError in words."""

    def standing_still(self) -> AbstractContextManager[None]:
        """Nothing behind the wall moves meanwhile but what is run from here. Raises WallError."""

    def interrupt(self) -> None:
        """Kill everything behind the wall, from any thread; what runs ends as interrupted."""

    def end_all(self) -> None:
        """Kill everything behind the wall; it stays up for the next command."""

    def close(self) -> None:
        """Kill everything behind the wall, for good."""
