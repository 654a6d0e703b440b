"""A story of a PRD, and which one a task is about."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORD = re.compile(r"[^\W\d_]{4,}")


class BrokenPrd(Exception):
    """The file is no PRD; the message says what is wrong, and where."""


@dataclass(frozen=True)
class Box:
    """A place in the file that says whether something is done: a check-box, or the value of `passes`."""

    label: str
    start: int
    end: int
    is_ticked: bool
    ticked: str
    open: str


@dataclass(frozen=True)
class Story:
    id: str
    title: str
    text: str  # as the file has it
    boxes: tuple[Box, ...]
    priority: float = math.inf

    @property
    def is_done(self) -> bool:
        return all(box.is_ticked for box in self.boxes)

    @property
    def name(self) -> str:
        return self.id or self.title


@dataclass(frozen=True)
class Choice:
    """`nth`: which one, among those of the file that have the same name."""

    file: str
    story: Story
    nth: int
    score: int
    reason: str


def best_choice(stories: Iterable[tuple[str, int, Story]], words: str) -> Choice | None:
    """Of open stories (file, nth, story): the one that `words` name best, then the most urgent, then the first."""
    scored = [(_score(story, words), file, nth, story) for file, nth, story in stories if not story.is_done]
    if not scored:
        return None
    (score, reason), file, nth, story = min(scored, key=lambda row: (-row[0][0], row[3].priority))
    if not score:
        reason = "nothing names a story, and no open one has a lower priority number"
    return Choice(file, story, nth, score, reason)


def mark_done(text: str, story: Story) -> str:
    """The same text but for the boxes of the story."""
    return _edited(text, ((box, box.ticked) for box in story.boxes if not box.is_ticked))


def take_back(text: str, story: Story, before: Story) -> str:
    """Boxes that were open before the work are open again: that something is done is for the gate to say."""
    was_open = {box.label for box in before.boxes if not box.is_ticked}
    return _edited(text, ((box, box.open) for box in story.boxes if box.is_ticked and box.label in was_open))


def _edited(text: str, edits: Iterable[tuple[Box, str]]) -> str:
    for box, new in sorted(edits, key=lambda edit: -edit[0].start):
        text = text[: box.start] + new + text[box.end :]
    return text


def _score(story: Story, words: str) -> tuple[int, str]:
    words, title = _flat(words), _flat(story.title)
    id_named = _is_named(_flat(story.id), words)
    title_named = _is_named(title, words)
    common = sum(re.search(rf"(?<!\w){word}", words) is not None for word in set(_WORD.findall(title)))
    reasons = (
        ("its id is named", id_named),
        ("its title is named", title_named),
        (f"{common} {'word' if common == 1 else 'words'} of its title", common),
    )
    return 5 * id_named + 4 * title_named + common, ", ".join(reason for reason, holds in reasons if holds)


def _is_named(name: str, words: str) -> bool:
    """As a word of its own: `US-1` is not named by `US-12`, `US-1.2` or `STATUS-1`."""
    return bool(name) and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w]|[.-]\w)", words) is not None


def _flat(text: str) -> str:
    return " ".join(text.casefold().split())
