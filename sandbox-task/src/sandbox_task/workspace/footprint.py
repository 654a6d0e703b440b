"""What has changed in a workspace, told without git: by what nobody can set back.

A directory changes with every entry that is added, removed, renamed or replaced in it, and with its mode. As long as
none has, there are no other files than before; only what is in them may have changed.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_TICK_NS = 20_000_000  # more than one of the clock by which a file system dates changes

type Change = Literal["nothing", "contents", "anything"]
type _Marks = dict[str, tuple[int, int]]  # which file it is, and when it was last changed


class _TooMany(Exception):
    """More than are looked at."""


@dataclass(frozen=True)
class Look:
    """What may be different by now, and what will have to be different from then on for the next time."""

    change: Change
    files: tuple[str, ...] | None = None  # whose contents may be others; None: nobody knows
    footprint: Footprint | None = None  # None: to be taken anew


@dataclass(frozen=True)
class Footprint:
    """`files` is None if they are many; both are if there are too many directories, or one can't be looked at."""

    root: Path
    directories: _Marks | None
    files: _Marks | None
    taken_ns: int

    @classmethod
    def of(cls, root: Path) -> Self:
        taken = time.time_ns()
        try:
            directories, names = _walk(root)
            files = _marks(names) if len(names) <= limits.FOOTPRINT_FILES else None
            return cls(root, _marks(directories), files, taken)
        except (OSError, _TooMany):
            return cls(root, None, None, taken)

    def look(self) -> Look:
        """Nothing may move meanwhile."""
        try:
            if not self._has_same_directories():
                return Look("anything")
            return self._look_at_files() if self.files is not None else Look("contents", footprint=self)
        except OSError:
            return Look("anything")

    def _has_same_directories(self) -> bool:
        if self.directories is None or any(map(self._is_fresh, self.directories.values())):
            return False
        return _marks(self.directories) == self.directories

    def _look_at_files(self) -> Look:
        before, taken = self.files or {}, time.time_ns()
        now = _marks(before)
        changed = [path for path, mark in before.items() if now[path] != mark or self._is_fresh(mark)]
        if not changed:
            return Look("nothing", footprint=self)
        start = len(str(self.root)) + 1
        return Look("contents", tuple(path[start:] for path in changed), replace(self, files=now, taken_ns=taken))

    def _is_fresh(self, mark: tuple[int, int]) -> bool:
        """What was changed just before may have been changed again without a trace."""
        return mark[1] > self.taken_ns - _TICK_NS


def _marks(paths: Iterable[str]) -> _Marks:
    found = {}
    for path in paths:
        status = os.lstat(path)
        found[path] = (status.st_ino, status.st_ctime_ns)
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
