"""What has changed in a workspace, told without git: by what nobody can set back.

A directory changes with every entry that is added, removed, renamed or replaced in it, and with its mode. As long as
none has, there are no other files than before; only what is in them may have changed.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from sandpiper import limits

if TYPE_CHECKING:
    from pathlib import Path

_TICK_NS = 20_000_000  # more than one of the clock by which a file system dates changes

Change = Literal["nothing", "contents", "anything"]


class _Mark(NamedTuple):
    inode: int
    changed_ns: int


class _TooMany(Exception):
    """More than are looked at."""


@dataclass(frozen=True)
class Footprint:
    """`files` is None if they are many; both are if there are too many directories, or one can't be looked at."""

    directories: dict[str, _Mark] | None
    files: dict[str, _Mark] | None
    taken_ns: int

    @classmethod
    def of(cls, root: Path) -> Self:
        taken = time.time_ns()
        try:
            directories, names = _walk(root)
            files = _marks(names) if len(names) <= limits.FOOTPRINT_FILES else None
            return cls(_marks(directories), files, taken)
        except (OSError, _TooMany):
            return cls(None, None, taken)

    def change(self) -> Change:
        """What may be different by now. Nothing may move meanwhile."""
        try:
            if not self._is_same(self.directories):
                return "anything"
            return "nothing" if self._is_same(self.files) else "contents"
        except OSError:
            return "anything"

    def _is_same(self, marks: dict[str, _Mark] | None) -> bool:
        """What was changed just before may have been changed again without a trace."""
        if marks is None or max((mark.changed_ns for mark in marks.values()), default=0) > self.taken_ns - _TICK_NS:
            return False
        return _marks(marks) == marks


def _marks(paths: list[str] | dict[str, _Mark]) -> dict[str, _Mark]:
    found = {}
    for path in paths:
        status = os.lstat(path)
        found[path] = _Mark(status.st_ino, status.st_ctime_ns)
    return found


def _walk(root: Path) -> tuple[list[str], list[str]]:
    """Directories and files, without the workspace's own `.git`, which is no part of the work."""
    directories, files, own = [str(root)], [], str(root / ".git")
    for directory in directories:
        with os.scandir(directory) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    files.append(entry.path)
                elif entry.path != own:
                    directories.append(entry.path)
        if len(directories) > limits.FOOTPRINT_DIRECTORIES:
            raise _TooMany
    return directories, files
