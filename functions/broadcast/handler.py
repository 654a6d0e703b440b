"""The stream of the events table → broadcast."""

from __future__ import annotations

import functools
import os
from typing import Any

from broadcast.settings import Settings
from sandpiper import limits
from sandpiper.adapters.aws import client
from sandpiper.adapters.connections import DynamoConnections
from sandpiper.adapters.event_log import EventLog, event_from_item
from sandpiper.adapters.sockets import ApiGatewaySockets
from sandpiper.logic.broadcast import Broadcast, LogRecord
from shared.json_logs import json_logger

NEWS = {"INSERT", "MODIFY"}  # an event is inserted; what the model is just saying is written over
REMEMBERED_RUNS = 1024

logger = json_logger("broadcast")


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    records = [_log_record(record) for record in event["Records"] if record["eventName"] in NEWS]
    failed = broadcast().send(records)
    logger.info("sent", extra={"records": len(records), "failed": len(failed)})
    return {"batchItemFailures": [{"itemIdentifier": sequence_number} for sequence_number in failed]}


def _log_record(record: dict[str, Any]) -> LogRecord:
    change = record["dynamodb"]
    return LogRecord(change["SequenceNumber"], event_from_item(change["NewImage"]))


@functools.cache
def broadcast() -> Broadcast:
    settings = Settings.read(os.environ)
    dynamodb = client("dynamodb")
    log = EventLog(dynamodb, runs_table=settings.runs_table, events_table="")
    management = client(
        "apigatewaymanagementapi",
        endpoint_url=settings.management_url,
        read_seconds=limits.SEND_SECONDS,
        attempts=1,  # who takes nothing must not be waited for, and what may pass is tried again by the rules
    )
    return Broadcast(
        connections=DynamoConnections(dynamodb, connections_table=settings.connections_table),
        sockets=ApiGatewaySockets(management),
        # a run never changes hands
        owner_of=functools.lru_cache(REMEMBERED_RUNS)(lambda run_id: str(log.run_head(run_id)["owner"])),
    )
