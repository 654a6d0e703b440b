"""AWS clients, one per service and process, made by botocore: boto3 costs more to import and adds nothing we use."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    from botocore.config import Config
    from botocore.session import Session
    from mypy_boto3_apigatewaymanagementapi import ApiGatewayManagementApiClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_ecs import ECSClient
    from mypy_boto3_kms import KMSClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_stepfunctions import SFNClient

CONNECT_SECONDS = 2
READ_SECONDS = 10
ATTEMPTS = 3

_building = threading.Lock()


@overload
def client(
    service: Literal["apigatewaymanagementapi"],
    *,
    endpoint_url: str | None = ...,
    read_seconds: float = ...,
    attempts: int = ...,
) -> ApiGatewayManagementApiClient: ...
@overload
def client(
    service: Literal["dynamodb"], *, endpoint_url: str | None = ..., read_seconds: float = ..., attempts: int = ...
) -> DynamoDBClient: ...
@overload
def client(service: Literal["ecs"], *, endpoint_url: str | None = ..., read_seconds: float = ...) -> ECSClient: ...
@overload
def client(
    service: Literal["kms"], *, endpoint_url: str | None = ..., read_seconds: float = ..., attempts: int = ...
) -> KMSClient: ...
@overload
def client(
    service: Literal["lambda"], *, endpoint_url: str | None = ..., read_seconds: float = ...
) -> LambdaClient: ...
@overload
def client(
    service: Literal["s3"], *, endpoint_url: str | None = ..., read_seconds: float = ..., attempts: int = ...
) -> S3Client: ...
@overload
def client(
    service: Literal["secretsmanager"], *, endpoint_url: str | None = ..., read_seconds: float = ...
) -> SecretsManagerClient: ...
@overload
def client(
    service: Literal["stepfunctions"], *, endpoint_url: str | None = ..., read_seconds: float = ..., attempts: int = ...
) -> SFNClient: ...
def client(
    service: str, *, endpoint_url: str | None = None, read_seconds: float = READ_SECONDS, attempts: int = ATTEMPTS
) -> Any:
    """The process's client of a service. Safe to call from any thread and on every request."""
    # Calling a client is thread-safe, making one on a shared session is not.
    with _building:
        return _client(service, endpoint_url, read_seconds, attempts)


def read_early(*services: str) -> None:
    """What botocore has to know of these services: reading it is most of what making their clients takes."""
    loader = _session().get_component("data_loader")
    for service in services:
        for kind in ("service-2", "endpoint-rule-set-1"):
            loader.load_service_model(service, kind)
    for name in ("partitions", "endpoints", "sdk-default-configuration", "_retry"):
        loader.load_data(name)


def own_credentials() -> list[str]:
    """What requests are signed with."""
    credentials = _session().get_credentials()
    if credentials is None:
        return []
    frozen = credentials.get_frozen_credentials()
    return [value for value in (frozen.access_key, frozen.secret_key, frozen.token) if value]


def error_code(error: Exception) -> str:
    """The service's own name for what went wrong ("" for an error that no service sent)."""
    response = getattr(error, "response", {})
    return str(response.get("Error", {}).get("Code", ""))


def config(service: str, read_seconds: float = READ_SECONDS, attempts: int = ATTEMPTS) -> Config:
    """How a service is spoken to. S3's bodies are neither signed nor summed up: the line is encrypted, S3 sums them up
    itself, and where much is sent it would be a third of the work."""
    from botocore.config import Config  # noqa: PLC0415 - see _session

    return Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=read_seconds,
        retries={"mode": "standard", "total_max_attempts": attempts},
        signature_version="s3v4" if service == "s3" else None,
        s3={"payload_signing_enabled": False},
        request_checksum_calculation="when_required",
        tcp_keepalive=True,
        max_pool_connections=32,
    )


@functools.cache
def _client(service: str, endpoint_url: str | None, read_seconds: float, attempts: int) -> Any:
    settings = config(service, read_seconds, attempts)
    return _session().create_client(service, endpoint_url=endpoint_url, config=settings)


@functools.cache
def _session() -> Session:
    # Half the start-up time of a small function, so only who makes a client pays, when it makes one.
    from botocore.session import get_session  # noqa: PLC0415

    return get_session()
