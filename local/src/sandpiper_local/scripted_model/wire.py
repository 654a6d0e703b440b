"""A reply as the Messages API sends it: one JSON message, or the same message as a stream of events."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from sandpiper_local.scripted_model.conversation import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sandpiper_local.scripted_model.scenario import Reply

CHUNK_CHARS = 64
RAW_INPUT = "raw_input"  # in our hands only: what of a call's JSON is sent, however broken


def digest(request: Mapping[str, Any]) -> str:
    """The same conversation has the same digest, so a repeated request gets the same ids."""
    spoken = json.dumps([request["model"], request["messages"]], sort_keys=True)
    return hashlib.sha256(spoken.encode()).hexdigest()


def message_for(request: Mapping[str, Any], reply: Reply, usage: Mapping[str, int]) -> dict[str, Any]:
    content = list(_content(reply, digest(request)))
    return {
        "id": f"msg_{digest(request)[20:44]}",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": reply.stop_reason or ("tool_use" if reply.tools else "end_turn"),
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": estimate_tokens(content)} | reply.usage,
    }


def _content(reply: Reply, key: str) -> Iterator[dict[str, Any]]:
    if reply.thinking:
        yield {"type": "thinking", "thinking": reply.thinking, "signature": f"sig_{key[:24]}"}
    if reply.text:
        yield {"type": "text", "text": reply.text}
    for index, call in enumerate(reply.tools):
        id_ = f"toolu_{key[:20]}{index:02d}" if call.id is None else call.id
        raw = {} if call.raw_input is None else {RAW_INPUT: call.raw_input}
        yield {"type": "tool_use", "id": id_, "name": call.name, "input": call.input, **raw}
    yield from (dict(block) for block in reply.blocks)


def as_json(message: Mapping[str, Any]) -> dict[str, Any]:
    """As one answer, in which nothing can be cut off in the middle."""
    content = [{key: value for key, value in block.items() if key != RAW_INPUT} for block in message["content"]]
    return {**message, "content": content}


def input_tokens(request: Mapping[str, Any]) -> int:
    return estimate_tokens([request.get(part) for part in ("system", "tools", "messages")])


def events_of(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    usage = message["usage"]
    opening = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": opening}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        yield from _block_events(index, block)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": usage}
    yield {"type": "message_stop"}


def _block_events(index: int, block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    empty, deltas = _opened(block)
    yield {"type": "content_block_start", "index": index, "content_block": empty}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _opened(block: Mapping[str, Any]) -> tuple[dict[str, Any], Iterable[dict[str, str]]]:
    """How a block begins, and what is then added to it."""
    match block["type"]:
        case "text":
            return {**block, "text": ""}, _deltas("text_delta", "text", block["text"])
        case "thinking":
            signed = {"type": "signature_delta", "signature": block["signature"]}
            thought = _deltas("thinking_delta", "thinking", block["thinking"])
            return {**block, "thinking": "", "signature": ""}, (*thought, signed)
        case "tool_use":
            begun = {key: value for key, value in block.items() if key != RAW_INPUT}
            return {**begun, "input": {}}, _deltas("input_json_delta", "partial_json", input_json(block))
    return dict(block), ()


def input_json(block: Mapping[str, Any]) -> str:
    """What a tool is called with, as the model wrote it."""
    return str(block[RAW_INPUT]) if RAW_INPUT in block else json.dumps(block["input"])


def _deltas(kind: str, field: str, text: str) -> Iterator[dict[str, str]]:
    for start in range(0, len(text), CHUNK_CHARS):
        yield {"type": kind, field: text[start : start + CHUNK_CHARS]}


def sse(event: Mapping[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
