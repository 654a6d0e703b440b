"""The Anthropic Messages API, or any server that speaks it.

The current models refuse a forced tool choice and sampling settings, so none is ever sent.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

from sandbox_task.model import catalogue
from sandbox_task.model.port import (
    Block,
    Message,
    Reply,
    Request,
    StopReason,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    TurnUsage,
)
from sandpiper.errors import RunError

if TYPE_CHECKING:
    import anthropic
    from anthropic.types import Message as ApiMessage

_RETRIES = 4
_CACHED = {"type": "ephemeral"}
_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "pause_turn": "end",
    "tool_use": "tool_calls",
    "max_tokens": "cut_off",
    "refusal": "refused",
    "model_context_window_exceeded": "too_long",
}


def import_early() -> threading.Thread:
    """The SDK takes a second or more to import: begin while the repository is cloned."""
    thread = threading.Thread(target=__import__, args=("anthropic",), name="import-anthropic", daemon=True)
    thread.start()
    return thread


class AnthropicModel:
    context_tokens = 200_000

    def __init__(self, name: str, *, api_key: str, base_url: str | None) -> None:
        self.name = catalogue.full_name(name)
        self._api_key, self._base_url = api_key, base_url
        self._client: anthropic.Anthropic | None = None

    def complete(self, request: Request) -> Reply:
        import anthropic  # noqa: PLC0415 - costs a second, see import_early

        if self._client is None:
            if not self._api_key:
                raise RunError("model_request_error", "No model key is configured: set the secret that holds it.")
            self._client = anthropic.Anthropic(api_key=self._api_key, base_url=self._base_url, max_retries=_RETRIES)
        try:
            with self._client.messages.stream(**self._parameters(request)) as stream:
                return self._reply(stream.get_final_message())
        except anthropic.APIError as error:
            raise _in_words(error, self.name) from error

    def _parameters(self, request: Request) -> dict[str, Any]:
        messages = [_message(message) for message in request.messages]
        messages[-1]["content"][-1]["cache_control"] = _CACHED
        parameters: dict[str, Any] = {
            "model": self.name,
            "max_tokens": request.max_tokens,
            "system": [{"type": "text", "text": request.system, "cache_control": _CACHED}],
            "messages": messages,
            "tools": [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in request.tools
            ],
        }
        if self.name in catalogue.CATALOGUE:
            # without it these models say nothing that can be shown between their tool calls
            parameters["thinking"] = {"type": "adaptive", "display": "summarized"}
        return parameters

    def _reply(self, message: ApiMessage) -> Reply:
        usage = TurnUsage(
            input_tokens=message.usage.input_tokens,
            output_tokens=message.usage.output_tokens,
            cache_read_tokens=message.usage.cache_read_input_tokens or 0,
            cache_write_tokens=message.usage.cache_creation_input_tokens or 0,
        )
        usage = usage.model_copy(update={"cost_usd": catalogue.cost_usd(self.name, usage)})
        blocks = tuple(_block(block.to_dict()) for block in message.content)
        return Reply(blocks=blocks, stop=_STOPS.get(message.stop_reason or "", "end"), usage=usage)


def _block(raw: dict[str, Any]) -> Block:
    if raw["type"] == "text":
        return Text(text=raw["text"])
    if raw["type"] == "tool_use":
        arguments = raw["input"] if isinstance(raw["input"], dict) else {"": raw["input"]}
        return ToolCall(id=raw["id"], name=raw["name"], arguments=arguments)
    return Thought(summary=raw.get("thinking") or "", raw=raw)


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": [_content(block) for block in message.blocks]}


def _content(block: Block) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Thought():
            return dict(block.raw)
        case ToolCall():
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.arguments}
        case ToolResult():
            error = {"is_error": True} if block.is_error else {}
            return {"type": "tool_result", "tool_use_id": block.call_id, "content": block.content, **error}


def _in_words(error: anthropic.APIError, model: str) -> RunError:
    import anthropic  # noqa: PLC0415 - imported by now

    if isinstance(error, anthropic.APIStatusError):
        return _status_in_words(error.status_code, _said(error), model)
    if isinstance(error, anthropic.APITimeoutError):
        return RunError("model_request_error", "The model did not answer in time.", retryable=True)
    if isinstance(error, anthropic.APIConnectionError):
        return RunError("model_request_error", "The model's server could not be reached.", retryable=True)
    return RunError("model_response_error", f"The model's answer could not be read: {error.message}", retryable=True)


def _status_in_words(status: int, said: str, model: str) -> RunError:
    if status in (401, 403):
        return RunError("model_request_error", f"The model's server refused the key: {said}")
    if status == 404:
        return RunError("model_request_error", f"The model's server knows no model {model!r}: {said}")
    if status == 429 or status >= 500:
        return RunError(
            "model_request_error", f"The model's server is overloaded or failing ({status}): {said}", retryable=True
        )
    return RunError("model_request_error", f"The model's server refused the request ({status}): {said}")


def _said(error: anthropic.APIStatusError) -> str:
    body = error.body if isinstance(error.body, dict) else {}
    inner = cast("dict[str, Any]", body).get("error")
    return str(inner.get("message")) if isinstance(inner, dict) and inner.get("message") else error.message
