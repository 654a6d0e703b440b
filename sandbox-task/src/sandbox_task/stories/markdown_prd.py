"""Stories of a markdown PRD: headings with check-boxes below them, or a checklist of stories."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from sandbox_task.stories.story import Box, Story

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_HEADING = re.compile(r"\ufeff? {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*\r?$")
_BOX = re.compile(r"([ \t]*)(?:[-*+]|\d+[.)])[ \t]+\[([ xX])\][ \t]+(.*?)[ \t]*\r?$")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_NAMED = re.compile(
    r"[\W_]*((?:User[ \t]+)?Story[ \t]+#?\d+(?:\.\d+)*|[A-Z]{1,10}-\d+(?:[.-]\d+)*)\b(.*)", re.IGNORECASE
)
_CONTAINER = re.compile(
    r"\W*(?:\d[\d.]*\W+)?(?:user )?(?:stories|tasks?|to-?dos?|check-?list|backlog|requirements?|goals?|milestones?"
    r"|acceptance(?: criteria)?|criteria|definition of done|progress|status|features?)\b",
    re.IGNORECASE,
)
_PRIORITY = re.compile(r"\bpriority\b\W{0,8}(?:P?(\d+)|(high|medium|low))", re.IGNORECASE)
_LEVELS = {"high": 1, "medium": 2, "low": 3}


@dataclass(frozen=True)
class _Heading:
    level: int
    text: str
    start: int


@dataclass(frozen=True)
class _Row:
    """A check-box with the headings that it stands under, the outermost first."""

    indent: int
    box: Box
    line: tuple[int, int]
    above: tuple[_Heading, ...]


def read_markdown(text: str) -> list[Story]:
    rows = list(_rows(text))
    if by_id := _under_headings(rows, lambda heading: _NAMED.fullmatch(heading.text) is not None):
        return [_of_heading(text, heading, below) for heading, below in by_id]
    if not any(_NAMED.fullmatch(row.box.label) for row in rows):
        own = _under_headings(rows, lambda heading: heading.level > 1 and not _CONTAINER.match(heading.text))
        if own:
            return [_of_heading(text, heading, below) for heading, below in own]
    return [_of_item(text, items) for items in _items(rows)]


def _rows(text: str) -> Iterator[_Row]:
    """Every check-box outside of code."""
    fence: str | None = None
    above: list[_Heading] = []
    start = 0
    for line in text.split("\n"):
        if mark := _FENCE.match(line):
            fence = mark[1] if fence is None else None if mark[1] == fence else fence
        elif fence is None and (match := _HEADING.match(line)):
            above = [heading for heading in above if heading.level < len(match[1])]
            above.append(_Heading(len(match[1]), match[2], start))
        elif fence is None and (match := _BOX.match(line)):
            at = start + match.start(2)
            box = Box(match[3], at, at + 1, match[2] != " ", "x", " ")
            yield _Row(len(match[1].expandtabs(4)), box, (start, start + len(line)), tuple(above))
        start += len(line) + 1


def _under_headings(rows: Sequence[_Row], is_story: Callable[[_Heading], bool]) -> list[tuple[_Heading, list[_Row]]]:
    """Boxes by the nearest heading above them that is a story."""
    found: dict[_Heading, list[_Row]] = {}
    for row in rows:
        if owner := next((heading for heading in reversed(row.above) if is_story(heading)), None):
            found.setdefault(owner, []).append(row)
    return list(found.items())


def _items(rows: Sequence[_Row]) -> list[list[_Row]]:
    """Items of the outermost level, each with those that are indented below it."""
    found: list[list[_Row]] = []
    for _, section in groupby(rows, key=lambda row: row.above):
        least: int | None = None
        for row in section:
            if least is None or row.indent <= least:
                least = row.indent
                found.append([])
            found[-1].append(row)
    return found


def _of_heading(text: str, heading: _Heading, rows: Sequence[_Row]) -> Story:
    return _story(heading.text, text[heading.start : rows[-1].line[1]], rows)


def _of_item(text: str, rows: Sequence[_Row]) -> Story:
    return _story(rows[0].box.label, text[rows[0].line[0] : rows[-1].line[1]], rows)


def _story(label: str, text: str, rows: Sequence[_Row]) -> Story:
    match = _NAMED.fullmatch(label)
    name, title = (match[1], match[2]) if match else ("", label)
    return Story(name, title.strip(" \t*_:`.-–—])("), text, tuple(row.box for row in rows), _priority(text))


def _priority(text: str) -> float:
    match = _PRIORITY.search(text)
    if match is None:
        return math.inf
    return float(match[1]) if match[1] else _LEVELS[match[2].lower()]
