"""The ways in which clients speak to the server. All of them tell the same stories."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from sandpiper_local.scripted_model import converse, event_stream
from sandpiper_local.scripted_model.errors import ProtocolError, Refusal, aws_error, error_body
from sandpiper_local.scripted_model.protocol import check_create
from sandpiper_local.scripted_model.wire import as_json, events_of, sse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

_INVOKE_VERSION = "bedrock-2023-05-31"
_EVENT_STREAM = "application/vnd.amazon.eventstream"


class Wire(Protocol):
    content_type: ClassVar[str]
    garbage: ClassVar[bytes]  # what no client can read

    def read(self, request: web.Request, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request as the Messages API would put it. Raises Refusal and ProtocolError."""

    def frames(self, message: Mapping[str, Any]) -> list[bytes]: ...

    def error_frame(self, name: str) -> bytes: ...

    def refuse(self, refusal: Refusal) -> tuple[dict[str, Any], dict[str, str]]:
        """Body and headers of the answer."""


class MessagesWire:
    content_type: ClassVar = "text/event-stream"
    garbage: ClassVar = b'event: content_block_delta\ndata: {"type": "content_block_de\n\n'

    def read(self, request: web.Request, body: Mapping[str, Any]) -> dict[str, Any]:
        authenticate(request)
        if "anthropic-version" not in request.headers:
            raise ProtocolError("anthropic-version: header is required")
        check_create(body, beta=is_beta(request))
        return dict(body)

    def frames(self, message: Mapping[str, Any]) -> list[bytes]:
        return [sse(event) for event in events_of(message)]

    def error_frame(self, name: str) -> bytes:
        return sse({"type": "error", "error": {"type": name, "message": "a scripted fault"}})

    def refuse(self, refusal: Refusal) -> tuple[dict[str, Any], dict[str, str]]:
        return error_body(refusal.status, str(refusal)), refusal.headers


class InvokeWire:
    """Messages inside of Bedrock's InvokeModelWithResponseStream."""

    content_type: ClassVar = _EVENT_STREAM
    garbage: ClassVar = event_stream.event("chunk", {"bytes": "AA=="})[:-1] + b"\0"

    def read(self, request: web.Request, body: Mapping[str, Any]) -> dict[str, Any]:
        authenticate_aws(request)
        if body.get("anthropic_version") != _INVOKE_VERSION:
            raise ProtocolError(f"anthropic_version: must be {_INVOKE_VERSION!r}")
        if misplaced := {"model", "stream"} & set(body):
            raise ProtocolError(f"{min(misplaced)}: Extra inputs are not permitted")
        given = {key: value for key, value in body.items() if key not in {"anthropic_version", "anthropic_beta"}}
        conversation = {"model": request.match_info["model"], **given}
        check_create(conversation, beta="anthropic_beta" in body)
        return conversation

    def frames(self, message: Mapping[str, Any]) -> list[bytes]:
        return [_chunk(event) for event in events_of(message)]

    def error_frame(self, name: str) -> bytes:
        return event_stream.exception(name, "a scripted fault")

    def refuse(self, refusal: Refusal) -> tuple[dict[str, Any], dict[str, str]]:
        return aws_error(refusal)


class ConverseWire:
    content_type: ClassVar = _EVENT_STREAM
    garbage: ClassVar = event_stream.event("contentBlockDelta", {"delta": {}})[:-1] + b"\0"

    def read(self, request: web.Request, body: Mapping[str, Any]) -> dict[str, Any]:
        authenticate_aws(request)
        return converse.read(request.match_info["model"], body)

    def frames(self, message: Mapping[str, Any]) -> list[bytes]:
        return [event_stream.event(kind, data) for kind, data in converse.events_of(message)]

    def error_frame(self, name: str) -> bytes:
        return event_stream.exception(name, "a scripted fault")

    def refuse(self, refusal: Refusal) -> tuple[dict[str, Any], dict[str, str]]:
        return aws_error(refusal)


def authenticate(request: web.Request) -> None:
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    if not bearer and not request.headers.get("x-api-key"):
        raise Refusal(401, "x-api-key: header or bearer token is required")


def authenticate_aws(request: web.Request) -> None:
    """That a request is signed, and for Bedrock; who signed it, nobody here knows."""
    signature = request.headers.get("Authorization", "")
    if not signature.startswith("AWS4-HMAC-SHA256 ") or "/bedrock/aws4_request" not in signature:
        raise Refusal(403, "Missing Authentication Token")


def is_beta(request: web.Request) -> bool:
    return "anthropic-beta" in request.headers or request.query.get("beta") == "true"


def _chunk(event: Mapping[str, Any]) -> bytes:
    return event_stream.event("chunk", {"bytes": base64.b64encode(json.dumps(event).encode()).decode()})


def whole(message: Mapping[str, Any]) -> bytes:
    """For who asks for no stream."""
    return json.dumps(as_json(message)).encode()
