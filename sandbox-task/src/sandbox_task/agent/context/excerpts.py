"""The part of a text that is worth its room: its beginning, or the lines around the words that were searched for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox_task.agent.context.words import Term

_AROUND = 5
_LINE_CHARS = 300


@dataclass(frozen=True)
class Excerpt:
    text: str
    part: str = ""  # which lines these are, unless all


def beginning(text: str, *, tokens: int) -> Excerpt:
    lines, room = text.rstrip("\n").split("\n"), tokens * limits.CHARS_PER_TOKEN
    kept: list[str] = []
    for line in map(_cut, lines):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    if len(kept) == len(lines):
        return Excerpt("\n".join(kept))
    return Excerpt("\n".join(kept), f'lines="1-{len(kept)} of {len(lines)}"') if kept else Excerpt("")


def around(text: str, terms: Sequence[Term], *, tokens: int) -> Excerpt:
    """All of it if it fits; otherwise the lines with the most telling words, with their surroundings and numbers."""
    whole = beginning(text, tokens=tokens)
    lines = text.rstrip("\n").split("\n")
    hits = _telling_lines(lines, terms)
    if not whole.part or not hits:
        return whole
    kept: set[int] = set()
    room = tokens * limits.CHARS_PER_TOKEN
    for hit in hits:
        window = [n for n in range(max(hit - _AROUND, 0), min(hit + _AROUND + 1, len(lines))) if n not in kept]
        room -= sum(min(len(lines[n]), _LINE_CHARS) + 8 for n in window)
        if room < 0:
            break
        kept.update(window)
    return Excerpt(_numbered(lines, sorted(kept)), f'lines="{len(kept)} of {len(lines)}, numbered"') if kept else whole


def _telling_lines(lines: Sequence[str], terms: Sequence[Term]) -> list[int]:
    lowered = [line.lower() for line in lines]
    counts = {term.text: sum(term.text in line for line in lowered) for term in terms}
    scores = [sum(term.weight / counts[term.text] for term in terms if term.text in line) for line in lowered]
    return sorted((n for n, score in enumerate(scores) if score), key=lambda n: (-scores[n], n))


def _numbered(lines: Sequence[str], numbers: Sequence[int]) -> str:
    shown = []
    for before, number in zip([-1, *numbers], numbers, strict=False):
        if number != before + 1:
            shown.append("…")
        shown.append(f"{number + 1}: {_cut(lines[number])}")
    return "\n".join(shown)


def _cut(line: str) -> str:
    return line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}… ({len(line) - _LINE_CHARS} more characters)"
