"""HTTP API → webhook. Who sent it, what it asks for, and on: GitHub waits ten seconds, the work is done elsewhere."""

from __future__ import annotations

import base64
import functools
import json
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sandpiper import limits
from sandpiper.adapters.aws import client
from sandpiper.errors import AuthenticationError, BadRequest, SandpiperError
from sandpiper.logic.github.deliveries import STARTING, Ignored, Triggers, read_delivery, run_id_of
from sandpiper.logic.github.signatures import is_signed, proof
from shared.json_logs import json_logger
from shared.secret_values import SecretValue
from webhook.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sandpiper.logic.github.deliveries import Delivery

logger = json_logger("webhook")
_DELIVERY_ID = re.compile(r"[0-9A-Za-z-]{1,100}")


@dataclass(frozen=True)
class World:
    secret: Callable[[], str]
    triggers: Triggers
    hand_on: Callable[[dict[str, Any]], None]


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    try:
        status, answer = _take(event)
    except SandpiperError as error:
        request_id = event.get("requestContext", {}).get("requestId", "")
        body = {"type": error.type, "message": error.message, "retryable": error.retryable, "request_id": request_id}
        status, answer = error.status, {"success": False, "error": body}
    logger.info("answered", extra={"code": status, **_named(event), **answer})
    return {"statusCode": status, "headers": {"Content-Type": "application/json"}, "body": json.dumps(answer)}


def _take(event: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    body, headers = _raw_body(event), event.get("headers", {})
    if not is_signed(world().secret(), body, headers.get("x-hub-signature-256")):
        raise AuthenticationError("The signature is missing or wrong.")
    name, payload = headers.get("x-github-event", ""), _json(body)
    if name == "ping":
        return 200, {"status": "pong"}
    triggers = replace(world().triggers, app_id=headers.get("x-github-hook-installation-target-id", ""))
    found = read_delivery(name, _delivery_id(headers), payload, triggers)
    if isinstance(found, Ignored):
        return 202, {"status": "ignored", "reason": found.reason}
    _hand_on(found)
    return 202, {"status": "accepted", **({"run_id": run_id_of(found)} if found.verb in STARTING else {})}


def _raw_body(event: Mapping[str, Any]) -> bytes:
    text = event.get("body") or ""
    body = base64.b64decode(text) if event.get("isBase64Encoded") else text.encode()
    if len(body) > limits.MAX_WEBHOOK_BYTES:
        raise TooLarge("GitHub sends no more than 25 MB.")
    return body


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest("The body is not valid JSON.") from error


def _delivery_id(headers: Mapping[str, str]) -> str:
    found = headers.get("x-github-delivery", "")
    if not _DELIVERY_ID.fullmatch(found):
        raise BadRequest("X-GitHub-Delivery is missing.")
    return found


def _hand_on(delivery: Delivery) -> None:
    text = json.dumps(delivery.as_dict(), ensure_ascii=False)
    world().hand_on({"action": "delivery", "delivery": text, "proof": proof(world().secret(), text)})


def _named(event: Mapping[str, Any]) -> dict[str, str]:
    headers = event.get("headers", {})
    return {"event": headers.get("x-github-event", ""), "delivery": headers.get("x-github-delivery", "")}


class TooLarge(SandpiperError):
    type = "validation_error"
    status = 413


@functools.cache
def world() -> World:
    settings = Settings.read(os.environ)
    return World(
        secret=SecretValue(settings.webhook_secret_arn),
        triggers=Triggers(settings.trigger_label, settings.assignee),
        hand_on=functools.partial(_invoke, settings.github_function),
    )


def _invoke(function: str, request: dict[str, Any]) -> None:
    client("lambda").invoke(
        FunctionName=function, InvocationType="Event", Payload=json.dumps(request, ensure_ascii=False).encode()
    )
