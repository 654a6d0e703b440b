"""Which lines of a pull request a remark can stand at: those that its diff shows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Side = Literal["LEFT", "RIGHT"]
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_CONTROL = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


@dataclass
class FileLines:
    """By number: the lines that are there after the change, and those that are gone with it."""

    right: dict[int, str] = field(default_factory=dict)
    left: dict[int, str] = field(default_factory=dict)


def commentable(diff: str) -> dict[str, FileLines]:
    """By path, of a unified diff as git writes it. What a file says can't be mistaken for the diff's own lines."""
    files: dict[str, FileLines] = {}
    lines, before = iter(diff.split("\n")), ""
    here = FileLines()
    for line in lines:
        if line.startswith("--- "):
            before = _path(line[4:])
        elif line.startswith("+++ "):
            after = _path(line[4:])
            here = files.setdefault(before if after == "/dev/null" else after, FileLines())
        elif hunk := _HUNK.match(line):
            _read_hunk(lines, hunk, here)
    return files


def of_patch(patch: str) -> FileLines:
    """Of one file, as GitHub lists it: hunks and nothing before them."""
    here, lines = FileLines(), iter(patch.split("\n"))
    for line in lines:
        if hunk := _HUNK.match(line):
            _read_hunk(lines, hunk, here)
    return here


def side_of(lines: FileLines | None, number: int | None) -> Side | None:
    """Where a remark about this line goes; None: the diff does not show it."""
    if lines is None or number is None:
        return None
    if number in lines.right:
        return "RIGHT"
    return "LEFT" if not lines.right and number in lines.left else None


def _read_hunk(lines: Iterator[str], hunk: re.Match[str], here: FileLines) -> None:
    left, right = int(hunk[1]), int(hunk[3])
    last_left, last_right = left + int(hunk[2] or 1), right + int(hunk[4] or 1)
    while left < last_left or right < last_right:
        line = next(lines, None)
        if line is None:
            return
        if line.startswith("\\"):
            continue
        if line.startswith("-"):
            here.left[left] = line[1:]
            left += 1
        else:
            here.right[right] = line[1:]
            right += 1
            left += not line.startswith("+")


def _path(name: str) -> str:
    """As it is in the repository: without git's prefix, quotes, and the tab behind a name with spaces."""
    name = name.removesuffix("\t")
    if name.startswith('"'):
        raw = _ESCAPE.sub(_unescaped, name[1:-1].encode(errors="surrogateescape"))
        name = raw.decode(errors="surrogateescape")
    return name if name == "/dev/null" else name[2:]


def _unescaped(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 8)]) if len(found[1]) == 3 else _CONTROL.get(found[1], found[1])
