"""The stream of the events table → broadcast."""

from __future__ import annotations

import functools
import os
import time
from typing import Any

from broadcast.settings import Settings
from sandpiper.adapters.aws import client
from sandpiper.adapters.connections import DynamoConnections
from sandpiper.adapters.event_log import event_from_item
from sandpiper.adapters.sockets import ApiGatewaySockets
from sandpiper.logic.broadcast import Broadcast, LogRecord
from shared.json_logs import json_logger

logger = json_logger("broadcast")


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    records = [_log_record(record) for record in event["Records"] if record["eventName"] == "INSERT"]
    failed = broadcast().send(records)
    logger.info("sent", extra={"records": len(records), "failed": len(failed)})
    return {"batchItemFailures": [{"itemIdentifier": sequence_number} for sequence_number in failed]}


def _log_record(record: dict[str, Any]) -> LogRecord:
    change = record["dynamodb"]
    return LogRecord(change["SequenceNumber"], event_from_item(change["NewImage"]))


@functools.cache
def broadcast() -> Broadcast:
    settings = Settings.read(os.environ)
    return Broadcast(
        connections=DynamoConnections(client("dynamodb"), connections_table=settings.connections_table),
        sockets=ApiGatewaySockets(client("apigatewaymanagementapi", endpoint_url=settings.management_url)),
        sleep=time.sleep,
    )
