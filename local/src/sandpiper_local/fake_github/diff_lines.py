"""Which lines of a file a diff shows, and where in it: comments may stand there and nowhere else."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(frozen=True)
class DiffLine:
    position: int  # counted from the first hunk's header
    left: int | None
    right: int | None
    hunk: str  # from the hunk's header to this line


def patch_body(patch: str) -> str | None:
    """The hunks alone, as the API shows them. None: there are none, as of a binary file."""
    found = re.search(r"^@@ ", patch, re.MULTILINE)
    return patch[found.start() :].rstrip("\n") if found else None


def diff_lines(patch: str) -> list[DiffLine]:
    lines: list[DiffLine] = []
    left = right = 0
    hunk: list[str] = []
    for position, text in enumerate((patch_body(patch) or "").split("\n")):
        if header := _HUNK.match(text):
            left, right, hunk = int(header[1]), int(header[2]), [text]
            continue
        hunk.append(text)
        mark = text[:1]
        if mark in {" ", "-", "+"}:
            on_left, on_right = left if mark != "+" else None, right if mark != "-" else None
            lines.append(DiffLine(position, on_left, on_right, "\n".join(hunk)))
            left, right = left + (mark != "+"), right + (mark != "-")
    return lines


def find_line(patch: str, line: int, side: str) -> DiffLine | None:
    return next((one for one in diff_lines(patch) if line == (one.right if side == "RIGHT" else one.left)), None)
