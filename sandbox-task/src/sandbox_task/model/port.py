"""A conversation with a model in our own words; adapters translate. Plain data, so that it can be stored."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from sandpiper.errors import RunError
from sandpiper.models.base import Model as Record

StopReason = Literal["end", "tool_calls", "cut_off", "refused", "too_long"]


class Text(Record):
    kind: Literal["text"] = "text"
    text: str


class Thought(Record):
    """Reasoning that the vendor wants back exactly as it was; `summary` is for people."""

    kind: Literal["thought"] = "thought"
    summary: str = ""
    raw: dict[str, Any]


class ToolCall(Record):
    kind: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    arguments: dict[str, Any]


class ToolResult(Record):
    kind: Literal["tool_result"] = "tool_result"
    call_id: str
    content: str
    is_error: bool = False


Block = Annotated[Text | Thought | ToolCall | ToolResult, Field(discriminator="kind")]


class Message(Record):
    role: Literal["user", "assistant"]
    blocks: tuple[Block, ...]


class ToolSpec(Record):
    name: str
    description: str
    parameters: dict[str, Any]


class Request(Record):
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    max_tokens: int


class TurnUsage(Record):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0


class Reply(Record):
    blocks: tuple[Block, ...]
    stop: StopReason
    usage: TurnUsage = TurnUsage()


class ModelUnavailable(RunError):
    """Nobody answers, retries and fallback included: a reason to wait, not to lose the run."""

    def __init__(self, message: str) -> None:
        super().__init__("model_request_error", message, retryable=True)


class Model(Protocol):
    name: str
    context_tokens: int  # how much the model takes in one request

    def complete(self, request: Request) -> Reply:
        """Raises ModelUnavailable, or RunError (model_request_error, model_response_error) for what stays wrong."""
