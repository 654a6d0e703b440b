"""Stories of a `prd.json`: which one a task is about, and the record of whether it passes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from sandpiper.models.run import GateStatus

FILE = "prd.json"
PROGRESS = "progress.txt"
_LIST = re.compile(r'"userStories"\s*:\s*\[')
_PASSES = re.compile(r'("passes"\s*:\s*)(true|false|null)')
_VERDICTS: dict[GateStatus, str] = {"passed": "PASSED", "failed": "FAILED", "skipped": "UNVERIFIED"}


@dataclass(frozen=True)
class Story:
    id: str
    title: str
    score: int


class BrokenPrd(Exception):
    """The file is no PRD; the message says why."""


def choose_story(text: str, words: str) -> Story | None:
    """The open story that `words` (task and plan) name best, then the most urgent one. Raises BrokenPrd."""
    stories = [story for story in _stories(text) if story.get("passes") is not True]
    if not stories:
        return None
    best = min(stories, key=lambda story: (-_score(story, words.lower()), _priority(story)))
    return Story(str(best.get("id", "")), str(best.get("title", "")), _score(best, words.lower()))


def mark_story(text: str, story: Story, *, passes: bool) -> str:
    """The same text but for one word. Raises BrokenPrd if that can't be done."""
    start, end = _span(text, story.id)
    old = text[start:end]
    value = "true" if passes else "false"
    new, count = _PASSES.subn(rf"\g<1>{value}", old, count=1)
    if not count:
        new = re.sub(r"\s*}\Z", f', "passes": {value}}}', old)
    if json.loads(new) != {**json.loads(old), "passes": passes}:
        raise BrokenPrd(f"the story {story.id} can't be changed in place")
    return text[:start] + new + text[end:]


def progress_line(story: Story, status: GateStatus, summary: str, task: str, now: datetime) -> str:
    first_line = task.strip().splitlines()[0][:200] if task.strip() else ""
    time = now.isoformat(timespec="seconds").replace("+00:00", "Z")
    return f"[{time}] {story.id} {story.title} :: {_VERDICTS[status]} :: {summary} :: Task: {first_line}\n"


def _stories(text: str) -> list[dict[str, Any]]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise BrokenPrd(f"it is not JSON: {error}") from error
    stories = document.get("userStories") if isinstance(document, dict) else None
    if not isinstance(stories, list) or not all(isinstance(story, dict) for story in stories):
        raise BrokenPrd("it has no list `userStories`")
    return stories


def _score(story: dict[str, Any], words: str) -> int:
    identifier, title = str(story.get("id", "")).lower(), str(story.get("title", "")).lower()
    named = bool(identifier) and re.search(rf"(?<!\w){re.escape(identifier)}(?!\w)", words) is not None
    titled = bool(title) and title in words
    common = sum(word in words for word in set(re.findall(r"\w{4,}", title)))
    return 5 * named + 4 * titled + common


def _priority(story: dict[str, Any]) -> float:
    priority = story.get("priority")
    return float(priority) if isinstance(priority, int | float) else float("inf")


def _span(text: str, story_id: str) -> tuple[int, int]:
    """Where in the text the story is written."""
    if (start := _LIST.search(text)) is None:
        raise BrokenPrd("it has no list `userStories`")
    decoder, position = json.JSONDecoder(), start.end()
    while opening := re.compile(r"[\s,]*(?={)").match(text, position):
        story, end = decoder.raw_decode(text, opening.end())
        if str(story.get("id", "")) == story_id:
            return opening.end(), end
        position = end
    raise BrokenPrd(f"it has no story {story_id}")
