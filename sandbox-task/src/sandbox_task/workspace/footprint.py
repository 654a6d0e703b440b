"""Whether any file of a small workspace has changed, told without git: by what nobody can set back."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TICK_NS = 20_000_000  # of the clock by which a file system dates changes


class _Mark(NamedTuple):
    inode: int
    changed_ns: int
    size: int
    mode: int


@dataclass(frozen=True)
class Footprint:
    """Of nothing (`marks` is None): too many files, or one that can't be looked at."""

    root: Path
    marks: dict[str, _Mark] | None
    taken_ns: int

    @classmethod
    def of(cls, root: Path) -> Self:
        taken = time.time_ns()
        return cls(root, _marks(root), taken)

    @property
    def is_of_use(self) -> bool:
        return self.marks is not None

    def is_still_true(self) -> bool:
        """A file that was changed just before may have been changed again without a trace."""
        marks = self.marks
        if marks is None or max((mark.changed_ns for mark in marks.values()), default=0) > self.taken_ns - _TICK_NS:
            return False
        return marks == _marks(self.root)


def _marks(root: Path) -> dict[str, _Mark] | None:
    found = {}
    try:
        for entry in _walk(root):
            status = entry.stat(follow_symlinks=False)
            found[entry.path] = _Mark(status.st_ino, status.st_ctime_ns, status.st_size, status.st_mode)
            if len(found) > limits.FOOTPRINT_FILES:
                return None
    except OSError:
        return None
    return found


def _walk(root: Path) -> Iterator[os.DirEntry[str]]:
    """Everything but the workspace's own `.git`, which is no part of the work."""
    todo = [str(root)]
    own = str(root / ".git")
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.path == own:
                    continue
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
