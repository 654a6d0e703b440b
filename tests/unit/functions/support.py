"""Calls the api function as HTTP API would, on fakes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, override
from urllib.parse import parse_qsl, urlsplit

from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyItemAlreadyExistsError,
    IdempotencyItemNotFoundError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.base import BasePersistenceLayer

from api import handler as api_handler
from api.health import Health
from api.idempotency import Idempotency
from api.world import World as ApiWorld
from sandpiper.logic.repos import RepoRules
from tests.unit.logic.world import World

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord

WEBSOCKET_URL = "wss://socket.test/live"


@dataclass
class LambdaContext:
    function_name: str = "function"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:eu-west-1:123456789012:function:function"
    aws_request_id: str = "lambda-request"

    def get_remaining_time_in_millis(self) -> int:
        return 30_000


class MemoryStore(BasePersistenceLayer):
    """Powertools' records in a dictionary."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Powertools leaves it without types
        self.records: dict[str, DataRecord] = {}

    @override
    def _get_record(self, idempotency_key: str) -> DataRecord:
        if idempotency_key not in self.records:
            raise IdempotencyItemNotFoundError
        return self.records[idempotency_key]

    @override
    def _put_record(self, data_record: DataRecord) -> None:
        if data_record.idempotency_key in self.records:
            raise IdempotencyItemAlreadyExistsError
        self.records[data_record.idempotency_key] = data_record

    @override
    def _update_record(self, data_record: DataRecord) -> None:
        self.records[data_record.idempotency_key] = data_record

    @override
    def _delete_record(self, data_record: DataRecord) -> None:
        self.records.pop(data_record.idempotency_key, None)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: Any

    @property
    def error(self) -> dict[str, Any]:
        assert self.body["success"] is False
        error: dict[str, Any] = self.body["error"]
        return error

    @property
    def fields(self) -> list[str]:
        return [detail["field"] for detail in self.error["details"]]


def event(
    method: str,
    path: str,
    body: str | None = None,
    headers: dict[str, str] | None = None,
    user: str | None = "ann",
    *,
    scope: str = "",
) -> dict[str, Any]:
    parts = urlsplit(path)
    authorizer = {"authorizer": {"lambda": {"user": user, "org": "acme", "scope": scope}}} if user else {}
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": parts.path,
        "rawQueryString": parts.query,
        "headers": {"content-type": "application/json", **(headers or {})},
        "queryStringParameters": dict(parse_qsl(parts.query, keep_blank_values=True)) or None,
        "requestContext": {
            "http": {"method": method, "path": parts.path},
            "stage": "$default",
            "requestId": "req-1",
            **authorizer,
        },
        "body": body,
        "isBase64Encoded": False,
    }


@dataclass
class Api:
    rules: World = field(default_factory=World)
    store: MemoryStore = field(default_factory=MemoryStore)
    pauses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        idempotency = Idempotency(self.store)
        self.health = Health(database=lambda: None, storage=lambda: None, model=lambda: True, github_url="https://g")
        self.world = ApiWorld(
            runs=self.rules.runs,
            starter=self.rules.starter,
            controls=self.rules.controls,
            blobs=self.rules.blobs,
            connections=self.rules.connections,
            idempotency=lambda: idempotency,
            health=self.health,
            repo_rules=RepoRules("https://github.com"),
            websocket_url=WEBSOCKET_URL,
            version="1.2.3",
            clock=self.rules.clock,
            quotas=self.rules.rules,
            line=self.rules.line,
            sleep=self.pauses.append,
        )

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        user: str | None = "ann",
        *,
        scope: str = "",
    ) -> Answer:
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        return self.invoke(event(method, path, text, headers, user, scope=scope))

    def invoke(self, request: dict[str, Any]) -> Answer:
        response = api_handler.handler(request, LambdaContext())  # type: ignore[arg-type]  # the part that is used
        headers = {name.lower(): value for name, value in response.get("headers", {}).items()}
        headers |= {name.lower(): values[0] for name, values in response.get("multiValueHeaders", {}).items()}
        return Answer(response["statusCode"], headers, json.loads(response["body"]))
