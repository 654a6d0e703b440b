"""Bedrock Converse, in terms of the Messages API: requests are translated to it, replies from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper_local.scripted_model.converse_protocol import check
from sandpiper_local.scripted_model.wire import CHUNK_CHARS, input_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MARK = {"type": "ephemeral"}
_STOPS = {"refusal": "content_filtered", "pause_turn": "end_turn"}


def read(model: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Raises ProtocolError."""
    check(body)
    return {
        "model": model,
        "max_tokens": body.get("inferenceConfig", {}).get("maxTokens", 1),
        "system": _marked(body.get("system", [])),
        "tools": [
            _tool(tool["toolSpec"]) for tool in body.get("toolConfig", {}).get("tools", []) if "toolSpec" in tool
        ],
        "messages": [{"role": said["role"], "content": _marked(said["content"])} for said in body["messages"]],
    }


def _marked(blocks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A cache point is a block of its own here, and a mark on the block before it there."""
    translated: list[dict[str, Any]] = []
    for block in blocks:
        if "cachePoint" in block and translated:
            translated[-1]["cache_control"] = _MARK
        else:
            translated.append(_block(block))
    return translated


def _tool(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": spec["name"], "input_schema": spec["inputSchema"]["json"]}


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    match block:
        case {"text": text}:
            return {"type": "text", "text": text}
        case {"toolUse": use}:
            return {"type": "tool_use", "id": use["toolUseId"], "name": use["name"], "input": use["input"]}
        case {"toolResult": result}:
            content = [_block(part) for part in result["content"]]
            failed = result.get("status") == "error"
            return {
                "type": "tool_result", "tool_use_id": result["toolUseId"], "content": content, "is_error": failed,
            }  # fmt: skip
        case {"reasoningContent": {"reasoningText": thought}}:
            return {"type": "thinking", "thinking": thought["text"], "signature": thought.get("signature", "")}
    return {"type": "other", "block": str(block)}


def events_of(message: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "messageStart", {"role": "assistant"}
    for index, block in enumerate(message["content"]):
        if block["type"] == "tool_use":
            start = {"toolUse": {"toolUseId": block["id"], "name": block["name"]}}
            yield "contentBlockStart", {"contentBlockIndex": index, "start": start}
        for delta in _deltas(block):
            yield "contentBlockDelta", {"contentBlockIndex": index, "delta": delta}
        yield "contentBlockStop", {"contentBlockIndex": index}
    reason = message["stop_reason"]
    yield "messageStop", {"stopReason": _STOPS.get(reason, reason)}
    yield "metadata", {"usage": _usage(message["usage"]), "metrics": {"latencyMs": 1}}


def _deltas(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    match block["type"]:
        case "text":
            yield from ({"text": piece} for piece in _pieces(block["text"]))
        case "tool_use":
            yield from ({"toolUse": {"input": piece}} for piece in _pieces(input_json(block)))
        case "thinking":
            yield from ({"reasoningContent": {"text": piece}} for piece in _pieces(block["thinking"]))
            yield {"reasoningContent": {"signature": block["signature"]}}
        case "redacted_thinking":
            yield {"reasoningContent": {"redactedContent": block["data"]}}


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + CHUNK_CHARS] for start in range(0, len(text), CHUNK_CHARS))


def _usage(usage: Mapping[str, int]) -> dict[str, int]:
    named = {
        "inputTokens": usage["input_tokens"],
        "outputTokens": usage["output_tokens"],
        "cacheReadInputTokens": usage["cache_read_input_tokens"],
        "cacheWriteInputTokens": usage["cache_creation_input_tokens"],
    }
    return {**named, "totalTokens": sum(named.values())}
