"""WebSocket API → websocket: $connect, $disconnect, and every message through $default."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from sandpiper import limits
from sandpiper.adapters.aws import client
from sandpiper.adapters.clock import SystemClock
from sandpiper.adapters.connections import DynamoConnections
from sandpiper.adapters.event_log import EventLog
from sandpiper.adapters.sockets import ApiGatewaySockets
from sandpiper.errors import AuthenticationError, QuotaExceeded
from sandpiper.logic.subscriptions import Subscriptions
from shared.json_logs import json_logger
from websocket.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandpiper.logic import frames

logger = json_logger("websocket")


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    request = event["requestContext"]
    # Not the route: that is chosen by what the client writes, and {"action": "$disconnect"} closes nothing.
    connection_id, kind = request["connectionId"], request["eventType"]
    status = 200
    match kind:
        case "CONNECT":
            status = _connect(connection_id, event)
        case "DISCONNECT":
            subscriptions().disconnect(connection_id)
        case _:
            subscriptions().receive(connection_id, event.get("body"), request.get("requestId", ""))
    logger.info("answered", extra={"event": kind, "connection_id": connection_id, "status": status})
    return {"statusCode": status}


def _connect(connection_id: str, event: dict[str, Any]) -> int:
    ticket = (event.get("queryStringParameters") or {}).get("ticket") or ""
    try:
        subscriptions().connect(connection_id, ticket)
    except (AuthenticationError, QuotaExceeded) as refusal:
        return refusal.status
    return 200


@functools.cache
def subscriptions() -> Subscriptions:
    settings = Settings.read(os.environ)
    dynamodb = client("dynamodb")
    management = client(
        "apigatewaymanagementapi", endpoint_url=settings.management_url, read_seconds=limits.SEND_SECONDS
    )
    return Subscriptions(
        connections=DynamoConnections(dynamodb, connections_table=settings.connections_table),
        log=EventLog(dynamodb, runs_table=settings.runs_table, events_table=settings.events_table),
        sockets=ApiGatewaySockets(management),
        clock=SystemClock(),
        control=_control,
    )


def _control(frame: frames.Control, identity: Mapping[str, Any]) -> dict[str, Any]:
    # Models and rules of control cost more than all the rest: only who controls a run pays for them, and once.
    from sandpiper.logic.socket_control import perform  # noqa: PLC0415
    from websocket.controls import controls  # noqa: PLC0415

    return perform(controls(), frame, identity)
