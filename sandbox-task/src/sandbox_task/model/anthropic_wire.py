"""The Messages API's way of saying it: our conversation as its parameters, its stream of events as our reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox_task.model import repair
from sandbox_task.model.caching import marked
from sandbox_task.model.port import (
    Block,
    Request,
    StopReason,
    Text,
    Thought,
    TurnUsage,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sandbox_task.model.catalogue import Entry
    from sandbox_task.model.port import Voice

_MARK = {"type": "ephemeral"}
_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "pause_turn": "end",
    "tool_use": "tool_calls",
    "max_tokens": "cut_off",
    "refusal": "refused",
    "model_context_window_exceeded": "too_long",
}
_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def parameters(request: Request, model: str, entry: Entry) -> dict[str, Any]:
    """The current models refuse a forced tool choice and sampling settings, so none is ever sent."""
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": min(request.max_tokens, entry.output_tokens),
        "messages": _messages(request, model),
    }
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _MARK}]
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
    if entry.thinks:
        # without it these models say nothing that can be shown between their tool calls
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
    return body


def _messages(request: Request, model: str) -> list[dict[str, Any]]:
    messages = repair.sendable(request.messages, is_own=lambda thought: _can_return(thought, model))
    wired = [_message(message) for message in messages]
    for place in marked(messages):
        wired[place]["content"][-1]["cache_control"] = _MARK
    return wired


def _can_return(thought: Thought, model: str) -> bool:
    """A thought that was cut off before its signature is not taken back."""
    raw = thought.raw
    signed = raw.get("type") == "redacted_thinking" or (raw.get("type") == "thinking" and raw.get("signature"))
    return bool(signed) and thought.model in {"", model}


def _message(message: repair.Sent) -> dict[str, Any]:
    return {"role": message.role, "content": [_content(block) for block in message.blocks]}


def _content(block: Block) -> dict[str, Any]:
    match block.kind:
        case "text":
            return {"type": "text", "text": block.text}
        case "thought":
            return dict(block.raw)
        case "tool_call":
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.arguments}
        case "tool_result":
            error = {"is_error": True} if block.is_error else {}
            return {"type": "tool_result", "tool_use_id": block.call_id, "content": block.content, **error}


def spoken(event: Mapping[str, Any]) -> tuple[Voice, str] | None:
    """What of an event people can be shown while the reply is on its way."""
    match event:
        case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": str(text)}}:
            return "text", text
        case {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": str(text)}}:
            return "thinking", text
    return None


class Draft:
    """A reply while its events come in. Kinds of events and blocks that we don't know are passed over."""

    def __init__(self) -> None:
        self.usage = TurnUsage()
        self.is_whole = False
        self._stop = ""
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}

    @property
    def stop(self) -> StopReason:
        return _STOPS.get(self._stop, "end")

    def add(self, event: Mapping[str, Any]) -> None:
        """Raises LookupError, TypeError, ValueError or AttributeError for what is no event of a message."""
        match event.get("type"):
            case "message_start":
                self._count(event["message"].get("usage") or {})
            case "content_block_start":
                self._blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                self._extend(event["index"], event["delta"])
            case "message_delta":
                self._stop = event["delta"].get("stop_reason") or self._stop
                self._count(event.get("usage") or {})
            case "message_stop":
                self.is_whole = bool(self._stop)

    def _extend(self, index: int, delta: Mapping[str, Any]) -> None:
        kind = str(delta.get("type"))
        if kind == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + delta["partial_json"]
        elif field := _DELTAS.get(kind):
            block = self._blocks[index]
            block[field] = (block.get(field) or "") + delta[field]

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Figures are totals so far: a later one replaces an earlier, one that is left out leaves it."""
        named = {
            "input_tokens": usage.get("input_tokens"),
            "output_tokens": usage.get("output_tokens"),
            "cache_read_tokens": usage.get("cache_read_input_tokens"),
            "cache_write_tokens": usage.get("cache_creation_input_tokens"),
        }
        given = {name: int(figure) for name, figure in named.items() if figure is not None}
        self.usage = self.usage.model_copy(update=given)

    def blocks(self, request: Request, model: str) -> tuple[Block, ...]:
        return tuple(self._finished(repair.Calls(request), model))

    def _finished(self, calls: repair.Calls, model: str) -> Iterator[Block]:
        for index, raw in sorted(self._blocks.items()):
            match raw.get("type"):
                case "text" if raw.get("text"):
                    yield Text(text=raw["text"])
                case "tool_use":
                    written = self._inputs.get(index, "")
                    arguments = repair.parsed(written) if written else raw.get("input") or {}
                    yield calls.make(raw.get("id"), raw.get("name"), arguments)
                case "thinking" | "redacted_thinking":
                    yield Thought(summary=raw.get("thinking") or "", raw=raw, model=model)
