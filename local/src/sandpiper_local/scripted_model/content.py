"""The content of a message: which blocks there are and what each must have."""

from __future__ import annotations

from typing import Any

from sandpiper_local.scripted_model.errors import ProtocolError

# block type → (fields it must have, fields it may have)
_BLOCKS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "text": (frozenset({"text"}), frozenset({"cache_control", "citations"})),
    "tool_use": (frozenset({"id", "name", "input"}), frozenset({"cache_control", "caller"})),
    "tool_result": (frozenset({"tool_use_id"}), frozenset({"content", "is_error", "cache_control"})),
    "image": (frozenset({"source"}), frozenset({"cache_control"})),
    "document": (frozenset({"source"}), frozenset({"cache_control", "citations", "context", "title"})),
    "thinking": (frozenset({"thinking", "signature"}), frozenset()),
    "redacted_thinking": (frozenset({"data"}), frozenset()),
}


def check_content(content: Any, where: str, *, allowed: set[str] | None) -> None:
    if isinstance(content, str):
        _check_text(content, where)
        return
    if not isinstance(content, list) or not content:
        raise ProtocolError(f"{where}: content must not be empty")
    for index, block in enumerate(content):
        _check_block(block, f"{where}.{index}", allowed)


def _check_block(block: Any, where: str, allowed: set[str] | None) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in _BLOCKS or (allowed is not None and kind not in allowed):
        raise ProtocolError(f"{where}.type: {kind!r} is not a content block that may be here")
    needed, optional = _BLOCKS[kind]
    if missing := needed - set(block):
        raise ProtocolError(f"{where}.{kind}.{min(missing)}: Field required")
    if unknown := set(block) - needed - optional - {"type"}:
        raise ProtocolError(f"{where}.{kind}.{min(unknown)}: Extra inputs are not permitted")
    _check_values(kind, block, where)


def _check_values(kind: str, block: dict[str, Any], where: str) -> None:
    if kind == "text":
        _check_text(block["text"], f"{where}.text")
    elif kind == "tool_use":
        if not isinstance(block["input"], dict):
            raise ProtocolError(f"{where}.tool_use.input: Input should be an object")
    elif kind == "tool_result" and block.get("content"):  # a tool may have nothing to say
        check_content(block["content"], f"{where}.content", allowed={"text", "image", "document"})


def _check_text(text: Any, where: str) -> None:
    if not isinstance(text, str) or not text.strip():
        raise ProtocolError(f"{where}: text content blocks must contain non-whitespace text")
