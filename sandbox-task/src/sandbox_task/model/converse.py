"""Any model of Amazon Bedrock that takes tools, through ConverseStream."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol, cast

from sandbox_task.model import catalogue, failures
from sandbox_task.model.converse_wire import MALFORMED_STOPS, Draft, parameters, spoken
from sandbox_task.model.port import Reply, Request, nobody
from sandpiper import limits
from sandpiper.adapters.aws import error_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from botocore.exceptions import ClientError

    from sandbox_task.model.bedrock import Place
    from sandbox_task.model.catalogue import PriceList
    from sandbox_task.model.port import Hear, TurnUsage


class Client(Protocol):
    def converse_stream(self, **parameters: Any) -> dict[str, Any]: ...


def converse_client(place: Place) -> Client:
    """Of a session of its own: making a client on a shared one is not safe while others do."""
    from botocore.config import Config  # noqa: PLC0415 - only who needs Bedrock pays for it
    from botocore.session import get_session  # noqa: PLC0415

    config = Config(
        connect_timeout=limits.MODEL_CONNECT_SECONDS,
        read_timeout=limits.MODEL_IDLE_SECONDS,
        retries={"total_max_attempts": 1},
        tcp_keepalive=True,
    )
    client = get_session().create_client(
        "bedrock-runtime", region_name=place.region, endpoint_url=place.endpoint, config=config
    )
    return cast("Client", client)


class ConverseModel:
    """`connect` makes the client, at the first call. Repeating what fails is left to resilient.py."""

    def __init__(self, name: str, *, connect: Callable[[], Client], prices: PriceList) -> None:
        self._entry = catalogue.find(name) or catalogue.UNKNOWN
        self.name, self.context_tokens = name, self._entry.context_tokens
        self._connect, self._prices = connect, prices
        self._client: Client | None = None

    def complete(self, request: Request, hear: Hear = nobody) -> Reply:
        self._client = self._client or self._connect()
        draft = Draft()
        failed = self._read(self._client, parameters(request, self.name, self._entry), draft, hear)
        usage = self._priced(draft.usage)
        if failed is not None:
            return self._failure(failed, usage)
        if not draft.stop_reason or draft.stop_reason in MALFORMED_STOPS:
            raise failures.broken(draft.stop_reason or "it ended too early", usage)
        return Reply(blocks=draft.blocks(request, self.name), stop=draft.stop, usage=usage, model=self.name)

    def _read(self, client: Client, wired: dict[str, Any], draft: Draft, hear: Hear) -> Exception | None:
        """Whatever is wrong with the request or with its answer is handed back: the draft says what it has cost."""
        from botocore.eventstream import ParserError  # noqa: PLC0415 - imported by now
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - botocore lets those of a stream through

        try:
            with closing(client.converse_stream(**wired)["stream"]) as events:
                for event in events:
                    draft.add(event)
                    if words := spoken(event):
                        hear(*words)
        except (ClientError, BotoCoreError, ParserError, HTTPError, LookupError, TypeError, ValueError) as error:
            return error
        return None

    def _failure(self, error: Exception, usage: TurnUsage) -> Reply:
        from botocore import exceptions  # noqa: PLC0415 - imported by now

        if isinstance(error, exceptions.ClientError):
            return self._refusal(error, usage)
        if isinstance(error, exceptions.ReadTimeoutError):
            raise failures.too_late(limits.MODEL_IDLE_SECONDS) from error
        if isinstance(error, exceptions.ParamValidationError | exceptions.NoCredentialsError):
            raise failures.refused(400, str(error), self.name) from error
        if isinstance(error, exceptions.ConnectionError | exceptions.HTTPClientError):
            raise failures.unreachable(str(error)) from error
        raise failures.broken(str(error) or type(error).__name__, usage) from error

    def _refusal(self, error: ClientError, usage: TurnUsage) -> Reply:
        answer: dict[str, Any] = error.response.get("ResponseMetadata", {})  # type: ignore[assignment]
        sent = int(answer.get("HTTPStatusCode", 200))
        status = sent if sent >= 400 else failures.status_of(error_code(error))
        said = str(error.response.get("Error", {}).get("Message", error))
        if failures.is_too_long(status, said):
            return failures.too_long(self.name, usage)
        wait = failures.retry_after(answer.get("HTTPHeaders", {}))
        raise failures.refused(status, said, self.name, retry_after=wait, usage=usage) from error

    def _priced(self, usage: TurnUsage) -> TurnUsage:
        return usage.model_copy(update={"cost_usd": self._prices.cost_usd(self.name, usage)})
