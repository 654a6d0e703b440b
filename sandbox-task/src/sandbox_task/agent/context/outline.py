"""A tree of files in few lines: the upper levels first, and a directory that is too much as one line with its count."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox_task.workspace.names import printable
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass
class _Directory:
    files: list[str] = field(default_factory=list)
    directories: dict[str, _Directory] = field(default_factory=dict)
    count: int = 0
    is_open: bool = False

    @property
    def lines(self) -> int:
        return len(self.files) + len(self.directories)


def outline(paths: Iterable[str], *, lines: int = limits.CONTEXT_TREE_LINES) -> str:
    root = _grow(paths)
    _open(root, lines)
    return "\n".join(_render(root, "", lines))


def _grow(paths: Iterable[str]) -> _Directory:
    root = _Directory()
    for path in paths:
        *parents, name = path.split("/")
        place = root
        place.count += 1
        for parent in parents:
            place = place.directories.setdefault(parent, _Directory())
            place.count += 1
        place.files.append(name)
    return root


def _open(root: _Directory, lines: int) -> None:
    """Level by level, small directories before large ones, as long as there is room."""
    number, waiting = 0, [(0, 0, 0, root)]
    while waiting:
        level, _, _, place = heapq.heappop(waiting)
        if level and place.lines > lines:
            continue
        place.is_open = True
        lines -= place.lines
        for directory in place.directories.values():
            number += 1
            heapq.heappush(waiting, (level + 1, directory.lines, number, directory))


def _render(place: _Directory, indent: str, lines: int) -> Iterator[str]:
    shown = lines - len(place.directories)
    for name, directory in sorted(place.directories.items())[:lines]:
        if directory.is_open:
            yield f"{indent}{printable(name)}/"
            yield from _render(directory, f"{indent} ", lines)
        else:
            yield f"{indent}{printable(name)}/ ({directory.count} {'file' if directory.count == 1 else 'files'})"
    files = sorted(place.files)
    yield from (f"{indent}{printable(name)}" for name in files[: max(shown, 0)])
    if (left := max(len(place.directories) - lines, 0) + len(files) - max(shown, 0)) > 0:
        yield f"{indent}… {left} more here"
