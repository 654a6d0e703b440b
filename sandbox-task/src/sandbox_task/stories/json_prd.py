"""Stories of a `prd.json`, each with the place of its `passes` in the text, so that nothing else need be rewritten."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandbox_task.stories.story import Box, BrokenPrd, Story

if TYPE_CHECKING:
    from collections.abc import Iterator

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
_BOM = "\ufeff"
_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}


@dataclass(frozen=True)
class _Member:
    """Where one member of an object is written: its key and its value, with the space before each."""

    key: str
    gap: str
    colon: str
    start: int
    end: int


def read_json(text: str) -> list[Story]:
    """Raises BrokenPrd."""
    document = _parsed(text)
    if not isinstance(document, dict):
        raise BrokenPrd(f"it is {_kind(document)}, and an object with a list `userStories` is wanted")
    stories = document.get("userStories")
    if not isinstance(stories, list):
        said = f"`userStories` is {_kind(stories)}" if "userStories" in document else "it has no `userStories`"
        raise BrokenPrd(f"{said}, and a list is wanted")
    for number, story in enumerate(stories, start=1):
        if not isinstance(story, dict):
            raise BrokenPrd(f"item {number} of `userStories` is {_kind(story)}, and an object is wanted")
    return [_story(text, span, story) for span, story in zip(_spans(text), stories, strict=True)]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text.removeprefix(_BOM))
    except json.JSONDecodeError as error:
        raise BrokenPrd(f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a thousand brackets
        raise BrokenPrd(f"it can't be read: {error}") from error


def _story(text: str, span: tuple[int, int], story: dict[str, Any]) -> Story:
    start, end = span
    box = _box(start, list(_members(text, start)), is_ticked=story.get("passes") is True)
    return Story(_name(story.get("id")), _name(story.get("title")), text[start:end], (box,), _priority(story))


def _box(start: int, members: list[_Member], *, is_ticked: bool) -> Box:
    """A story without `passes` gets it after its last member, written like that one."""
    if own := [member for member in members if member.key == "passes"]:
        return Box("passes", own[-1].start, own[-1].end, is_ticked, "true", "false")
    if not members:
        return Box("passes", start + 1, start + 1, is_ticked, '"passes": true', "")
    last = members[-1]
    return Box("passes", last.end, last.end, is_ticked, f',{last.gap}"passes"{last.colon}true', "")


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each story is written."""
    document = _skip(text, len(_BOM) if text.startswith(_BOM) else 0)
    stories = [member for member in _members(text, document) if member.key == "userStories"][-1]
    at = _skip(text, stories.start + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        yield at, end
        at = _next(text, end)


def _members(text: str, start: int) -> Iterator[_Member]:
    """Of the object that begins at `start`, which is known to be JSON."""
    before, at = start + 1, _skip(text, start + 1)
    while text[at] != "}":
        key, after = _DECODER.raw_decode(text, at)
        value = _skip(text, _skip(text, after) + 1)
        _, end = _DECODER.raw_decode(text, value)
        yield _Member(key, text[before:at], text[after:value], value, end)
        before, at = _skip(text, end) + 1, _next(text, end)


def _next(text: str, end: int) -> int:
    """Where the next value, key or closing bracket begins."""
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _name(value: Any) -> str:
    """Half a character, which only an escape can write, is none."""
    known = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    return known.encode(errors="replace").decode()


def _priority(story: dict[str, Any]) -> float:
    value = story.get("priority")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.inf
    try:
        priority = float(value)
    except (ValueError, OverflowError):  # a word; an integer beyond all floats
        return math.inf
    return priority if math.isfinite(priority) else math.inf


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "a number")
