"""The adapters of the model port, each against the scripted server by its own wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from sandbox_task.model.factory import model_for
from sandbox_task.model.port import Message, Request, Text, ToolCall, ToolResult, ToolSpec
from sandbox_task.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox_task.model.port import Block, Model, Reply

TOOL = ToolSpec(name="echo", description="Says it again.", parameters={"type": "object", "properties": {}})
FIRST = Message(role="user", blocks=(Text(text="Say hello"),))
# one name for each wire
NAMES = {"api": "sonnet", "bedrock": "us.anthropic.claude-sonnet-5-5", "converse": "mistral-large"}


def settings(url: str | None = None, **more: Any) -> Settings:
    bedrock = {"aws_endpoint_url_bedrock_runtime": url, "aws_region": "eu-west-1", "allow_bedrock": True}
    given = {"anthropic_base_url": url} | bedrock | more
    return Settings(
        run_id="r",
        attempt=1,
        task_token=SecretStr("t"),
        anthropic_api_key=SecretStr("sk-ant-test"),
        runs_table="r",
        events_table="e",
        artifacts_bucket="b",
        run_secrets_key_id="k",
        **given,
    )


def model_on(wire: str, url: str, **more: Any) -> Model:
    return model_for(NAMES[wire], settings(url, **more))


def request(*messages: Message, tools: Iterable[ToolSpec] = (TOOL,), system: str = "You are.") -> Request:
    return Request(system=system, messages=(FIRST, *messages), tools=tuple(tools), max_tokens=1000)


def scenario(*replies: dict[str, Any]) -> dict[str, Any]:
    return {"name": "s", "match": {"words": ["Say hello"]}, "replies": list(replies)}


def answered(reply: Reply, content: str = "ok", *, is_error: bool = False) -> tuple[Message, Message]:
    """The reply, and a result for each of its calls."""
    calls = [block for block in reply.blocks if isinstance(block, ToolCall)]
    results: tuple[Block, ...] = tuple(
        ToolResult(call_id=call.id, content=content, is_error=is_error) for call in calls
    )
    return (
        Message(role="assistant", blocks=reply.blocks),
        Message(role="user", blocks=results or (Text(text="Go on."),)),
    )
