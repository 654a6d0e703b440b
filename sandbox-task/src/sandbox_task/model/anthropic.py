"""Models that speak Anthropic's Messages API: at Anthropic, at a server of one's own, and on Bedrock (bedrock.py)."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sandbox_task.model import catalogue, failures
from sandbox_task.model.anthropic_wire import Draft, parameters, spoken
from sandbox_task.model.port import Reply, Request, TryFailed, nobody
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    import anthropic

    from sandbox_task.model.catalogue import PriceList
    from sandbox_task.model.port import Hear, TurnUsage


def import_early() -> threading.Thread:
    """The SDK takes a second or more to import: begin while the repository is cloned."""
    thread = threading.Thread(target=import_module, args=("sandbox_task.model.sdk",), name="import-sdk", daemon=True)
    thread.start()
    return thread


def api_client(*, api_key: str, base_url: str | None) -> anthropic.Anthropic:
    import anthropic  # noqa: PLC0415 - costs a second, see import_early

    if not api_key:
        message = "No model key is configured: set the secret that holds it."
        raise TryFailed("model_request_error", message, retryable=False)
    return anthropic.Anthropic(api_key=api_key, base_url=base_url, max_retries=0, timeout=timeout())


def timeout() -> anthropic.Timeout:
    import anthropic  # noqa: PLC0415 - as above

    return anthropic.Timeout(limits.MODEL_IDLE_SECONDS, connect=limits.MODEL_CONNECT_SECONDS)


class AnthropicModel:
    """`connect` makes the client, at the first call. Repeating what fails is left to resilient.py."""

    def __init__(
        self,
        name: str,
        *,
        connect: Callable[[], anthropic.Anthropic | anthropic.AnthropicBedrock],
        prices: PriceList,
        extra_body: dict[str, Any] | None = None,
    ) -> None:
        self._entry = catalogue.find(name) or catalogue.UNKNOWN
        self.name, self.context_tokens = name, self._entry.context_tokens
        self._connect, self._prices, self._extra_body = connect, prices, extra_body
        self._client: anthropic.Anthropic | anthropic.AnthropicBedrock | None = None

    def complete(self, request: Request, hear: Hear = nobody) -> Reply:
        self._client = self._client or self._connect()
        draft = Draft()
        failed = self._read(self._client, parameters(request, self.name, self._entry), draft, hear)
        usage = self._priced(draft.usage)
        if failed is not None:
            return self._failure(failed, usage)
        if not draft.is_whole:
            raise failures.broken("it ended too early", usage)
        return Reply(blocks=draft.blocks(request, self.name), stop=draft.stop, usage=usage, model=self.name)

    def _read(self, client: Any, wired: dict[str, Any], draft: Draft, hear: Hear) -> Exception | None:
        """Whatever is wrong with the request or with its answer is handed back: the draft says what it has cost."""
        import anthropic  # noqa: PLC0415 - imported by now
        import httpx2  # noqa: PLC0415
        from botocore.eventstream import ParserError  # noqa: PLC0415 - on Bedrock the SDK reads and signs by botocore
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415

        of_the_wire = (anthropic.APIError, httpx2.HTTPError, BotoCoreError, ParserError)
        of_the_data = (LookupError, TypeError, ValueError, AttributeError, RuntimeError)
        try:
            with client.messages.create(**wired, stream=True, extra_body=self._extra_body) as events:
                for event in events:
                    raw = event.to_dict(warnings=False)
                    draft.add(raw)
                    if words := spoken(raw):
                        hear(*words)
        except (*of_the_wire, *of_the_data) as error:
            return error
        return None

    def _failure(self, error: Exception, usage: TurnUsage) -> Reply:
        import anthropic  # noqa: PLC0415 - imported by now

        if isinstance(error, anthropic.APIStatusError):
            return self._refusal(error, usage)
        if isinstance(error, anthropic.APITimeoutError):
            raise failures.too_late(limits.MODEL_IDLE_SECONDS) from error
        if isinstance(error, anthropic.APIConnectionError):
            raise failures.unreachable(str(error.__cause__ or error.message)) from error
        if isinstance(error, RuntimeError):  # the SDK's word for no AWS credentials
            raise failures.refused(401, str(error), self.name) from error
        raise failures.broken(str(error) or type(error).__name__, usage) from error

    def _refusal(self, error: anthropic.APIStatusError, usage: TurnUsage) -> Reply:
        status = error.status_code if error.status_code >= 400 else failures.status_of(error.type or "")
        said = _said(error)
        if failures.is_too_long(status, said):
            return failures.too_long(self.name, usage)
        wait = failures.retry_after(error.response.headers)
        raise failures.refused(status, said, self.name, retry_after=wait, usage=usage) from error

    def _priced(self, usage: TurnUsage) -> TurnUsage:
        return usage.model_copy(update={"cost_usd": self._prices.cost_usd(self.name, usage)})


def _said(error: anthropic.APIStatusError) -> str:
    """Anthropic wraps its message, Bedrock does not."""
    body = error.body if isinstance(error.body, dict) else {}
    return str(error.api_message or body.get("message") or body.get("Message") or error.message)
