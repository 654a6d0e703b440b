"""The rules of Bedrock Converse that a client can break without noticing. A broken one is an error, as it is there."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sandpiper_local.scripted_model.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FIELDS = frozenset({
    "messages", "system", "inferenceConfig", "toolConfig", "guardrailConfig", "additionalModelRequestFields",
    "additionalModelResponseFieldPaths", "promptVariables", "requestMetadata", "performanceConfig", "serviceTier",
})  # fmt: skip
_BLOCKS = frozenset({"text", "image", "document", "toolUse", "toolResult", "cachePoint", "reasoningContent"})
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TOOL_USE_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_MAX_CACHE_POINTS = 4


def check(body: Mapping[str, Any]) -> None:
    if unknown := set(body) - _FIELDS:
        raise ProtocolError(f"{min(unknown)}: unknown field")
    if {"temperature", "topP"} & set(body.get("inferenceConfig", {})):
        raise ProtocolError("inferenceConfig: this client promised to send no sampling settings")
    _check_system(body.get("system", []))
    names = _check_tools(body.get("toolConfig"))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ProtocolError("messages: at least one message is required")
    for index, message in enumerate(messages):
        _check_message(message, f"messages.{index}")
    _check_turns(messages)
    _check_pairs(messages, has_tools=bool(names))
    if str(body).count("'cachePoint'") > _MAX_CACHE_POINTS:
        raise ProtocolError(f"at most {_MAX_CACHE_POINTS} cache points may be given")


def _check_system(system: Any) -> None:
    if not isinstance(system, list):
        raise ProtocolError("system: must be a list of blocks")
    for index, block in enumerate(system):
        if "cachePoint" not in block and not str(block.get("text", "")).strip():
            raise ProtocolError(f"system.{index}.text: must not be blank")


def _check_tools(config: Any) -> set[str]:
    if config is None:
        return set()
    tools = [tool["toolSpec"] for tool in config.get("tools", []) if "toolSpec" in tool]
    if not tools:
        raise ProtocolError("toolConfig.tools: at least one tool is required")
    for index, tool in enumerate(tools):
        if not _TOOL_NAME.fullmatch(str(tool.get("name"))):
            raise ProtocolError(f"toolConfig.tools.{index}.name: must match {_TOOL_NAME.pattern}")
        if tool.get("inputSchema", {}).get("json", {}).get("type") != "object":
            raise ProtocolError(f"toolConfig.tools.{index}.inputSchema.json: type must be object")
    return {tool["name"] for tool in tools}


def _check_message(message: Mapping[str, Any], where: str) -> None:
    if message.get("role") not in {"user", "assistant"}:
        raise ProtocolError(f"{where}.role: must be user or assistant")
    content = message.get("content")
    if not isinstance(content, list) or not content:
        raise ProtocolError(f"{where}.content: must not be empty")
    for index, block in enumerate(content):
        _check_block(block, f"{where}.content.{index}")


def _check_block(block: Mapping[str, Any], where: str) -> None:
    if len(block) != 1 or not set(block) <= _BLOCKS:
        raise ProtocolError(f"{where}: {sorted(block)} is not one kind of block")
    match block:
        case {"text": text} if not str(text).strip():
            raise ProtocolError(f"{where}.text: must not be blank")
        case {"toolUse": use}:
            _check_use(use, where)
        case {"toolResult": {"content": []}}:
            raise ProtocolError(f"{where}.toolResult.content: must not be empty")
        case {"toolResult": {"content": parts}}:
            for part in parts:
                _check_block(part, f"{where}.toolResult")


def _check_use(use: Mapping[str, Any], where: str) -> None:
    if not _TOOL_USE_ID.fullmatch(str(use.get("toolUseId"))) or not _TOOL_NAME.fullmatch(str(use.get("name"))):
        raise ProtocolError(f"{where}.toolUse: toolUseId and name must match their patterns")
    if not isinstance(use.get("input"), dict):
        raise ProtocolError(f"{where}.toolUse.input: must be an object")


def _check_turns(messages: Sequence[Mapping[str, Any]]) -> None:
    if messages[0]["role"] != "user" or messages[-1]["role"] != "user":
        raise ProtocolError("A conversation must start and end with a user message.")
    if any(one["role"] == other["role"] for one, other in pairwise(messages)):
        raise ProtocolError("Roles must alternate between user and assistant.")


def _check_pairs(messages: Sequence[Mapping[str, Any]], *, has_tools: bool) -> None:
    asked: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        answers = [block["toolResult"]["toolUseId"] for block in message["content"] if "toolResult" in block]
        if sorted(answers) != sorted(asked):
            raise ProtocolError(f"messages.{index}: toolResult blocks must answer exactly the toolUse blocks before")
        asked = [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]
        if seen.intersection(asked) or len(set(asked)) != len(asked):
            raise ProtocolError(f"messages.{index}: toolUse ids must be unique")
        seen.update(asked)
    if seen and not has_tools:
        raise ProtocolError("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
