"""What the scripted model does with a task that no scenario plays: look around, and say honestly that it can't."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper_local.scripted_model.conversation import tool_calls
from sandpiper_local.scripted_model.scenario import Reply, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "fallback"
EXPLANATION = (
    "This is Sandpiper's scripted model: it plays the sample task of `sandpiper demo` and can't do any other. "
    "Nothing was changed. Set ANTHROPIC_API_KEY and start `sandpiper up` again to have a real model do the work."
)
_PLAN: dict[str, Any] = {
    "summary": "Look at the repository, then say that the scripted model can't do this task.",
    "steps": ["List the files", "Finish without changes"],
    "files": [],
    "risks": ["This is the scripted model: it does only the sample task."],
    "validation_commands": [],
}
_EMPTY: dict[str, Any] = {"string": "", "array": [], "object": {}, "boolean": False, "integer": 0, "number": 0}


def fallback_reply(request: Mapping[str, Any]) -> Reply:
    offered = {tool["name"]: tool for tool in request.get("tools", [])}
    forced = _forced(request)
    called = {call["name"] for call in tool_calls(request["messages"])}
    if forced is not None and forced != "update_plan":
        return _call(forced, _least_input(offered[forced]))
    if forced is not None or ("update_plan" in offered and "update_plan" not in called):
        return _call("update_plan", _PLAN)
    if "list_files" in offered and "list_files" not in called:
        return _call("list_files", {}, text="Let me look around.")
    if "finish" in offered and "finish" not in called:
        return _call("finish", {"status": "blocked", "summary": EXPLANATION}, text=EXPLANATION)
    return Reply(text=EXPLANATION)


def _forced(request: Mapping[str, Any]) -> str | None:
    choice = request.get("tool_choice") or {}
    return choice["name"] if choice.get("type") == "tool" else None


def _least_input(tool: Mapping[str, Any]) -> dict[str, Any]:
    schema = tool.get("input_schema", {})
    properties = schema.get("properties", {})
    return {name: _least_value(properties.get(name, {})) for name in schema.get("required", [])}


def _least_value(schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    return _EMPTY.get(str(schema.get("type")), "")


def _call(name: str, arguments: dict[str, Any], *, text: str | None = None) -> Reply:
    return Reply(text=text, tools=(ToolCall(name=name, input=arguments),))
