"""A conversation with a model in our own words; adapters translate. Plain data, so that it can be stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from sandpiper.errors import RunError
from sandpiper.models.base import Model as Record

MALFORMED = "malformed_arguments"
Voice = Literal["text", "thinking"]
type Hear = Callable[[Voice, str], None]
StopReason = Literal["end", "tool_calls", "cut_off", "refused", "too_long"]


class Text(Record):
    kind: Literal["text"] = "text"
    text: str


class Thought(Record):
    """Reasoning that the vendor wants back exactly as it was; `summary` is for people.

    A thought is of use only to the `model` that had it: others refuse it.
    """

    kind: Literal["thought"] = "thought"
    summary: str = ""
    raw: dict[str, Any]
    model: str = ""


class ToolCall(Record):
    """`arguments` that were no JSON object are under the one key MALFORMED, which no tool takes."""

    kind: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    arguments: dict[str, Any]


class ToolResult(Record):
    kind: Literal["tool_result"] = "tool_result"
    call_id: str
    content: str
    is_error: bool = False
    failed: bool = False  # the call was made and did not succeed, as a command that exits with 1; not told to vendors


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

    @property
    def prompt_tokens(self) -> int:
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    def plus(self, other: TurnUsage) -> TurnUsage:
        return TurnUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            cost_usd=round(self.cost_usd + other.cost_usd, 8),
        )


class Reply(Record):
    """`model` is the one that answered; `usage` includes what was paid for tries that came to nothing."""

    blocks: tuple[Block, ...]
    stop: StopReason
    usage: TurnUsage = TurnUsage()
    model: str = ""


class TryFailed(RunError):
    """One request came to nothing. `retryable`: the same one may do better a little later."""

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retryable: bool,
        retry_after: float | None = None,
        usage: TurnUsage | None = None,
    ) -> None:
        super().__init__(kind, message, retryable=retryable)
        self.retry_after = retry_after
        self.usage = usage or TurnUsage()


class ModelUnavailable(RunError):
    """Nobody answers, retries and fallback included: a reason to wait, not to lose the run. `usage` was paid for."""

    def __init__(self, message: str, *, usage: TurnUsage | None = None) -> None:
        super().__init__("model_request_error", message, retryable=True)
        self.usage = usage or TurnUsage()


def nobody(_voice: Voice, _piece: str) -> None:
    """Who is told what a model says when nobody listens."""


class Model(Protocol):
    name: str
    context_tokens: int  # how much the model takes in one request

    def complete(self, request: Request, hear: Hear = nobody) -> Reply:
        """`hear` is told what the model says while it says it.

        Raises TryFailed (an adapter), or ModelUnavailable where others have been tried, too (resilient.py).
        """
