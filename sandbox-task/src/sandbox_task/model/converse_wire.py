"""Bedrock Converse's way of saying it: our conversation as its parameters, its stream of events as our reply."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from sandbox_task.model import repair
from sandbox_task.model.caching import marked
from sandbox_task.model.port import (
    Block,
    Request,
    StopReason,
    Text,
    Thought,
    ToolSpec,
    TurnUsage,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sandbox_task.model.catalogue import Entry
    from sandbox_task.model.port import Voice

_MARK = {"cachePoint": {"type": "default"}}
_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_calls",
    "max_tokens": "cut_off",
    "guardrail_intervened": "refused",
    "content_filtered": "refused",
    "model_context_window_exceeded": "too_long",
}
MALFORMED_STOPS = frozenset({"malformed_model_output", "malformed_tool_use"})


def parameters(request: Request, model: str, entry: Entry) -> dict[str, Any]:
    """No sampling settings and no tool choice: the same as on the other wires."""
    marks = [_MARK] if _caches(model) else []
    wired: dict[str, Any] = {
        "modelId": model,
        "messages": _messages(request, model),
        "inferenceConfig": {"maxTokens": min(request.max_tokens, entry.output_tokens)},
    }
    if request.system.strip():
        wired["system"] = [{"text": request.system}, *marks]
    if request.tools:
        wired["toolConfig"] = {"tools": [_tool(tool) for tool in request.tools]}
    return wired


def _caches(model: str) -> bool:
    """Others refuse a request with a cache point. Claude, which has one, speaks on a wire of its own."""
    return "amazon.nova" in model


def _tool(tool: ToolSpec) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"toolSpec": {"name": tool.name, **described, "inputSchema": {"json": tool.parameters}}}


def _messages(request: Request, model: str) -> list[dict[str, Any]]:
    messages = repair.sendable(request.messages, is_own=lambda thought: _can_return(thought, model))
    marks = marked(messages) if _caches(model) else frozenset()
    return [_message(message, [_MARK] if place in marks else []) for place, message in enumerate(messages)]


def _can_return(thought: Thought, model: str) -> bool:
    return "reasoningContent" in thought.raw and thought.model in {"", model}


def _message(message: repair.Sent, marks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": message.role, "content": [*map(_content, message.blocks), *marks]}


def _content(block: Block) -> dict[str, Any]:
    match block.kind:
        case "text":
            return {"text": block.text}
        case "thought":
            return {"reasoningContent": _reasoning(block.raw["reasoningContent"])}
        case "tool_call":
            return {"toolUse": {"toolUseId": block.id, "name": block.name, "input": block.arguments}}
        case "tool_result":
            status = "error" if block.is_error else "success"
            return {"toolResult": {"toolUseId": block.call_id, "content": [{"text": block.content}], "status": status}}


def _reasoning(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Bytes are kept as base64, because a conversation is stored as JSON."""
    if "redactedContent" in raw:
        return {"redactedContent": base64.b64decode(raw["redactedContent"])}
    return dict(raw)


def spoken(event: Mapping[str, Any]) -> tuple[Voice, str] | None:
    """What of an event people can be shown while the reply is on its way."""
    match event:
        case {"contentBlockDelta": {"delta": {"text": str(text)}}}:
            return "text", text
        case {"contentBlockDelta": {"delta": {"reasoningContent": {"text": str(text)}}}}:
            return "thinking", text
    return None


class Draft:
    """A reply while its events come in. Kinds of events and blocks that we don't know are passed over."""

    def __init__(self) -> None:
        self.usage = TurnUsage()
        self.stop_reason = ""
        self._texts: dict[int, str] = {}
        self._calls: dict[int, dict[str, Any]] = {}
        self._thoughts: dict[int, dict[str, Any]] = {}

    @property
    def stop(self) -> StopReason:
        return _STOPS.get(self.stop_reason, "end")

    def add(self, event: Mapping[str, Any]) -> None:
        """Raises LookupError, TypeError or ValueError for what is no event of a message."""
        match event:
            case {"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": start}}}:
                self._calls[index] = {"id": start.get("toolUseId"), "name": start.get("name"), "input": ""}
            case {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}:
                self._extend(index, delta)
            case {"messageStop": {"stopReason": reason}}:
                self.stop_reason = reason
            case {"metadata": {"usage": usage}}:
                self._count(usage)

    def _extend(self, index: int, delta: Mapping[str, Any]) -> None:
        match delta:
            case {"text": text}:
                self._texts[index] = self._texts.get(index, "") + text
            case {"toolUse": {"input": text}}:
                self._calls[index]["input"] += text
            case {"reasoningContent": {"redactedContent": data}}:
                thought = self._thoughts.setdefault(index, {})
                thought["redacted"] = thought.get("redacted", b"") + data
            case {"reasoningContent": pieces}:
                thought = self._thoughts.setdefault(index, {})
                thought.update({name: thought.get(name, "") + piece for name, piece in pieces.items()})

    def _count(self, usage: Mapping[str, int]) -> None:
        self.usage = TurnUsage(
            input_tokens=usage.get("inputTokens", 0),
            output_tokens=usage.get("outputTokens", 0),
            cache_read_tokens=usage.get("cacheReadInputTokens", 0),
            cache_write_tokens=usage.get("cacheWriteInputTokens", 0),
        )

    def blocks(self, request: Request, model: str) -> tuple[Block, ...]:
        calls = repair.Calls(request)
        return tuple(self._finished(calls, model))

    def _finished(self, calls: repair.Calls, model: str) -> Iterator[Block]:
        for index in sorted({*self._texts, *self._calls, *self._thoughts}):
            if thought := self._thoughts.get(index):
                yield _thought(thought, model)
            if text := self._texts.get(index):
                yield Text(text=text)
            if call := self._calls.get(index):
                yield calls.make(call["id"], call["name"], repair.parsed(call["input"]))


def _thought(pieces: Mapping[str, Any], model: str) -> Thought:
    if "redacted" in pieces:
        data = base64.b64encode(pieces["redacted"]).decode()
        return Thought(raw={"reasoningContent": {"redactedContent": data}}, model=model)
    raw = {"reasoningContent": {"reasoningText": {"text": "", **pieces}}}
    return Thought(summary=pieces.get("text", ""), raw=raw, model=model)
