"""Reading a Messages conversation: the few questions that scripts and checks ask of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

CHARS_PER_TOKEN = 4


class ToolResult(NamedTuple):
    tool_use_id: str
    text: str
    is_error: bool


def blocks(content: str | Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    """A string is shorthand for one block of text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content or [])


def text_of(content: str | Sequence[Mapping[str, Any]] | None) -> str:
    return "\n".join(str(block.get("text", "")) for block in blocks(content) if block.get("type") == "text")


def first_user_text(messages: Iterable[Mapping[str, Any]]) -> str:
    return next((text_of(message["content"]) for message in messages if message["role"] == "user"), "")


def replies_so_far(messages: Iterable[Mapping[str, Any]]) -> int:
    return sum(message["role"] == "assistant" for message in messages)


def tool_calls(messages: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        if message["role"] == "assistant":
            yield from (block for block in blocks(message["content"]) if block.get("type") == "tool_use")


def last_tool_results(messages: Sequence[Mapping[str, Any]]) -> list[ToolResult]:
    """Of the newest user turn only; a turn may be several messages in a row."""
    results: list[ToolResult] = []
    for message in reversed(messages):
        if message["role"] == "assistant":
            break
        found = [block for block in blocks(message["content"]) if block.get("type") == "tool_result"]
        results[:0] = [_tool_result(block) for block in found]
    return results


def _tool_result(block: Mapping[str, Any]) -> ToolResult:
    return ToolResult(block["tool_use_id"], text_of(block.get("content")), bool(block.get("is_error")))


def estimate_tokens(value: object) -> int:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return max(1, len(text) // CHARS_PER_TOKEN)
