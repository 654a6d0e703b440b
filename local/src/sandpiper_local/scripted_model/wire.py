"""A reply as the Messages API sends it: one JSON message, or the same message as a stream of events."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from sandpiper_local.scripted_model.conversation import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sandpiper_local.scripted_model.scenario import Reply

_CHUNK_CHARS = 64


def digest(request: Mapping[str, Any]) -> str:
    """The same conversation has the same digest, so a repeated request gets the same ids."""
    spoken = json.dumps([request["model"], request["messages"]], sort_keys=True)
    return hashlib.sha256(spoken.encode()).hexdigest()


def message_for(request: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
    key = digest(request)
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [
        {"type": "tool_use", "id": f"toolu_{key[:20]}{index:02d}", "name": call.name, "input": call.input}
        for index, call in enumerate(reply.tools)
    ]
    return {
        "id": f"msg_{key[20:44]}",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": reply.stop_reason or ("tool_use" if reply.tools else "end_turn"),
        "stop_sequence": None,
        "usage": _input_usage(request) | {"output_tokens": estimate_tokens(content)} | reply.usage,
    }


def input_tokens(request: Mapping[str, Any]) -> int:
    return estimate_tokens([request.get(part) for part in ("system", "tools", "messages")])


def _input_usage(request: Mapping[str, Any]) -> dict[str, int]:
    """With cache breakpoints, all but the newest turn counts as read from the cache and that turn as written to it."""
    total = input_tokens(request)
    if "cache_control" not in json.dumps(request):
        return {"input_tokens": total, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    newest = estimate_tokens(_newest_turn(request))
    written = newest if newest < total and len(request["messages"]) > 1 else total - 1
    return {"input_tokens": 1, "cache_creation_input_tokens": written, "cache_read_input_tokens": total - written - 1}


def _newest_turn(request: Mapping[str, Any]) -> list[Any]:
    messages = request["messages"]
    said = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    return list(messages[said[-1] + 1 if said else 0 :])


def stream_of(message: Mapping[str, Any]) -> Iterator[bytes]:
    usage = message["usage"]
    opening = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield _event("message_start", message=opening)
    yield _event("ping")
    for index, block in enumerate(message["content"]):
        yield from _block_events(index, block)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage=usage)
    yield _event("message_stop")


def _block_events(index: int, block: Mapping[str, Any]) -> Iterator[bytes]:
    if block["type"] == "text":
        empty = {**block, "text": ""}
        deltas = _deltas("text_delta", "text", block["text"])
    else:
        empty = {**block, "input": {}}
        deltas = _deltas("input_json_delta", "partial_json", json.dumps(block["input"]))
    yield _event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _deltas(kind: str, field: str, text: str) -> Iterator[dict[str, str]]:
    for start in range(0, len(text), _CHUNK_CHARS):
        yield {"type": kind, field: text[start : start + _CHUNK_CHARS]}


def _event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()
