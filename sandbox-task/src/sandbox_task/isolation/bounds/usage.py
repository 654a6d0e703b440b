"""What B has written, as A can see it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_BLOCK = 512
_LEAST = 4096  # a file costs the file system something even if it is empty


def bytes_below(places: Iterable[Path], *, at_most: int) -> int:
    """What the files there take up. Follows no link, counts a file with several names once, stops beyond `at_most`.

    What B closes to A is not seen: the space that is left tells of it.
    """
    total, linked = 0, set()
    for entry in _entries(places):
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            continue  # gone in between
        if status.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
            if status.st_ino in linked:
                continue
            linked.add(status.st_ino)
        total += max(status.st_blocks * _BLOCK, _LEAST)
        if total > at_most:
            break
    return total


def _entries(places: Iterable[Path]) -> Iterator[os.DirEntry[str]]:
    todo = [str(place) for place in places]
    while todo:
        try:
            with os.scandir(todo.pop()) as found:
                entries = list(found)
        except OSError:
            continue  # gone, or closed to us
        yield from entries
        todo += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


def space(place: Path) -> tuple[int, int, int]:
    """Of the file system there: bytes in use, bytes left, and files that can still be made."""
    status = os.statvfs(place)
    used = (status.f_blocks - status.f_bfree) * status.f_frsize
    files = status.f_favail if status.f_files else 1 << 62  # some file systems have no such number
    return used, status.f_bavail * status.f_frsize, files
