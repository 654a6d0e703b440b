"""The rules of the Messages API that a client can break without noticing. A broken one is an error, as it is there."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sandpiper_local.scripted_model.content import check_content
from sandpiper_local.scripted_model.conversation import blocks
from sandpiper_local.scripted_model.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_COUNTED = frozenset({
    "cache_control", "messages", "model", "output_config", "speed", "system", "thinking", "tool_choice", "tools",
    "user_profile_id", "workspace_id",
})  # fmt: skip
_CREATED = _COUNTED | {
    "container", "diagnostics", "inference_geo", "max_tokens", "metadata", "service_tier", "stop_sequences", "stream",
}  # fmt: skip
_BETA = frozenset({
    "compaction", "context_management", "fallback_credit_token", "fallbacks", "mcp_servers", "thread",
})  # fmt: skip
_WITHDRAWN = frozenset({"temperature", "top_k", "top_p"})
_TOOL_FIELDS = frozenset({
    "allowed_callers", "cache_control", "defer_loading", "description", "eager_input_streaming", "input_examples",
    "input_schema", "name", "strict", "type",
})  # fmt: skip
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_MAX_BREAKPOINTS = 4


def check_create(request: Mapping[str, Any], *, beta: bool) -> None:
    _check_fields(request, _CREATED | _BETA if beta else _CREATED)
    max_tokens = request.get("max_tokens")
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 1:
        raise ProtocolError("max_tokens: a positive integer is required")
    _check_common(request)


def check_count(request: Mapping[str, Any], *, beta: bool) -> None:
    _check_fields(request, _COUNTED | _BETA if beta else _COUNTED)
    _check_common(request)


def _check_fields(request: Mapping[str, Any], known: frozenset[str]) -> None:
    for field in request:
        if field in _WITHDRAWN:
            raise ProtocolError(f"{field}: this parameter is not supported by this model")
        if field not in known:
            raise ProtocolError(f"{field}: Extra inputs are not permitted")


def _check_common(request: Mapping[str, Any]) -> None:
    if not isinstance(request.get("model"), str) or not request["model"]:
        raise ProtocolError("model: Field required")
    names = _check_tools(request.get("tools", []))
    _check_tool_choice(request.get("tool_choice"), names)
    _check_thinking(request)
    if "system" in request and request["system"] != "":
        check_content(request["system"], "system", allowed={"text"})
    _check_messages(request.get("messages"))
    _check_breakpoints(request)


def _check_tools(tools: Any) -> set[str]:
    if not isinstance(tools, list):
        raise ProtocolError("tools: Input should be a valid list")
    names: set[str] = set()
    for index, tool in enumerate(tools):
        where = f"tools.{index}"
        if not isinstance(tool, dict):
            raise ProtocolError(f"{where}: Input should be an object")
        _check_tool(tool, where)
        if tool["name"] in names:
            raise ProtocolError(f"{where}.name: Tool names must be unique, {tool['name']!r} is there twice")
        names.add(tool["name"])
    return names


def _check_tool(tool: Mapping[str, Any], where: str) -> None:
    if not isinstance(tool.get("name"), str) or not _TOOL_NAME.fullmatch(tool["name"]):
        raise ProtocolError(f"{where}.name: String should match pattern '{_TOOL_NAME.pattern}'")
    if tool.get("type", "custom") not in {"custom", None}:
        return  # a tool of the server's own has no schema for us to look at
    if unknown := set(tool) - _TOOL_FIELDS:
        raise ProtocolError(f"{where}.{min(unknown)}: Extra inputs are not permitted")
    schema = tool.get("input_schema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ProtocolError(f"{where}.input_schema: an object schema is required")
    properties = schema.get("properties", {})
    if not isinstance(properties, dict) or not set(schema.get("required", [])) <= set(properties):
        raise ProtocolError(f"{where}.input_schema: properties must be an object that has all that is required")


def _check_tool_choice(choice: Any, names: set[str]) -> None:
    if choice is None:
        return
    if not isinstance(choice, dict) or choice.get("type") not in {"auto", "any", "tool", "none"}:
        raise ProtocolError("tool_choice: type must be one of auto, any, tool, none")
    if unknown := set(choice) - {"type", "name", "disable_parallel_tool_use"}:
        raise ProtocolError(f"tool_choice.{min(unknown)}: Extra inputs are not permitted")
    if not names:
        raise ProtocolError("tool_choice: may only be specified while providing tools")
    if choice["type"] == "tool" and choice.get("name") not in names:
        raise ProtocolError(f"tool_choice.name: Tool {choice.get('name')!r} not found in provided tools")


def _check_thinking(request: Mapping[str, Any]) -> None:
    thinks = (request.get("thinking") or {}).get("type", "disabled") != "disabled"
    if thinks and (request.get("tool_choice") or {}).get("type") in {"any", "tool"}:
        raise ProtocolError("Thinking may not be enabled when tool_choice forces tool use.")


def _check_messages(messages: Any) -> None:
    if not isinstance(messages, list) or not messages:
        raise ProtocolError("messages: at least one message is required")
    for index, message in enumerate(messages):
        _check_message(message, f"messages.{index}")
    if messages[0]["role"] != "user":
        raise ProtocolError('messages: first message must use the "user" role')
    if messages[-1]["role"] == "assistant":
        raise ProtocolError("messages: the conversation must end with a user message; this model takes no prefill")
    _check_pairs(messages)


def _check_message(message: Any, where: str) -> None:
    if not isinstance(message, dict) or message.get("role") not in {"user", "assistant", "system"}:
        raise ProtocolError(f"{where}.role: must be user or assistant")
    if unknown := set(message) - {"role", "content"}:
        raise ProtocolError(f"{where}.{min(unknown)}: Extra inputs are not permitted")
    check_content(message.get("content"), f"{where}.content", allowed=None)
    spoken = [block["type"] for block in blocks(message["content"])]
    if message["role"] == "assistant" and spoken[-1] in {"thinking", "redacted_thinking"}:
        raise ProtocolError(f"{where}: The final block in an assistant message cannot be `{spoken[-1]}`.")
    kinds = set(spoken)
    if "tool_use" in kinds and message["role"] != "assistant":
        raise ProtocolError(f"{where}: `tool_use` blocks can only be in `assistant` messages")
    if "tool_result" in kinds and message["role"] != "user":
        raise ProtocolError(f"{where}: `tool_result` blocks can only be in `user` messages")


def _check_pairs(messages: Sequence[Mapping[str, Any]]) -> None:
    """Each tool_use is answered once, in the very next turn, before anything else is said in it."""
    open_ids: list[str] = []
    used: set[str] = set()
    for place, (role, content) in enumerate(_turns(messages)):
        where = f"messages (turn {place + 1})"
        if role == "user":
            _check_answers(content, open_ids, where)
        open_ids = [block["id"] for block in content if block["type"] == "tool_use"]
        if used.intersection(open_ids) or len(set(open_ids)) != len(open_ids):
            raise ProtocolError(f"{where}: `tool_use` ids must be unique")
        used.update(open_ids)


def _turns(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    spoken = (message for message in messages if message["role"] != "system")
    for role, group in groupby(spoken, key=lambda message: str(message["role"])):
        yield role, [block for message in group for block in blocks(message["content"])]


def _check_answers(content: Sequence[Mapping[str, Any]], open_ids: Sequence[str], where: str) -> None:
    answers = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    if missing := [use for use in open_ids if use not in answers]:
        raise ProtocolError(
            f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}"
        )
    if strangers := [answer for answer in answers if answer not in open_ids]:
        raise ProtocolError(f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(strangers)}")
    if len(set(answers)) != len(answers):
        raise ProtocolError(f"{where}: each `tool_use` must have a single result")
    if any(block["type"] != "tool_result" for block in content[: len(answers)]):
        raise ProtocolError(f"{where}: `tool_result` blocks must come first in the content")


def _check_breakpoints(request: Mapping[str, Any]) -> None:
    marked = list(_cache_controls({key: value for key, value in request.items() if key != "metadata"}))
    for mark in marked:
        if not isinstance(mark, dict) or mark.get("type") != "ephemeral" or set(mark) - {"type", "ttl"}:
            raise ProtocolError("cache_control: type must be 'ephemeral'")
    if len(marked) > _MAX_BREAKPOINTS:
        raise ProtocolError(
            f"A maximum of {_MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {len(marked)}."
        )


def _cache_controls(value: Any) -> Iterator[Any]:
    """Only where a block may carry one: what a tool was called with is the model's own text."""
    if isinstance(value, list):
        for item in value:
            yield from _cache_controls(item)
    elif isinstance(value, dict):
        if value.get("cache_control") is not None:
            yield value["cache_control"]
        for key in value.keys() & {"system", "tools", "messages", "content"}:
            yield from _cache_controls(value[key])
