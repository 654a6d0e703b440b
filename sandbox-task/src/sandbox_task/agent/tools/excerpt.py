"""A range of lines out of something that may be far larger than what fits here."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable

_ENOUGH_BYTES = 4 * limits.MODEL_OUTPUT_CHARS  # a character has at most four
_NOT_UTF8 = "[This is not UTF-8 text; what can't be read is shown as �.]\n"


@dataclass(frozen=True)
class Excerpt:
    """`passed` counts the lines before it."""

    text: str
    lines: int
    passed: int


def excerpt(chunks: Iterable[bytes], first: int = 1, last: int | None = None) -> Excerpt:
    """Lines `first` to `last`, as many of them as the model may be shown; where they are cut is said."""
    taken, passed = bytearray(), 0
    for chunk in chunks:
        start, ends = _after_lines(chunk, first - 1 - passed)
        passed += ends
        if passed == first - 1:
            taken += chunk[start:]
        if len(taken) > _ENOUGH_BYTES or (last is not None and taken.count(b"\n") > last - first):
            break
    text, note = _decoded(bytes(taken))
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    wanted = [line for line in lines if line][: None if last is None else max(0, last - first + 1)]
    return Excerpt(note + _bounded(wanted, first) if wanted else "", len(wanted), passed)


def _after_lines(chunk: bytes, count: int) -> tuple[int, int]:
    """Where the text after that many line ends begins, and how many there were up to there."""
    if (there := chunk.count(b"\n")) < count:
        return len(chunk), there
    position = 0
    for _ in range(count):
        position = chunk.index(b"\n", position) + 1
    return position, count


def _decoded(data: bytes) -> tuple[str, str]:
    """The text and what is to be said of it. A character that is cut off at the end is no fault."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data), ""
    except UnicodeDecodeError:
        return data.decode(errors="replace"), _NOT_UTF8


def _bounded(lines: list[str], first: int) -> str:
    room, shown = limits.MODEL_OUTPUT_CHARS, 0
    while shown < len(lines) and (room := room - len(lines[shown])) >= 0:
        shown += 1
    if shown == len(lines):
        return "".join(lines)
    if shown == 0:
        start = lines[0][: limits.MODEL_OUTPUT_CHARS]
        return f"{start}\n… line {first} is longer than can be shown: read on with start_line={first + 1}\n"
    return "".join(lines[:shown]) + f"… cut at line {first + shown}: read on with start_line={first + shown}\n"
