"""Open sockets, what they follow, and the tickets that open them, in one DynamoDB table.

| row | pk | sk |
|---|---|---|
| ticket | `TICKET#<sha256>` | `TICKET` |
| connection | `CONN#<id>` | `CONN` |
| what a connection follows | `CONN#<id>` | `RUN#<run>` |
| who follows a run | `RUN#<run>` | `CONN#<id>` |

What is counted of them is in `connection_counts.py`.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from sandpiper.adapters import writes
from sandpiper.adapters.connection_counts import (
    one_less_socket,
    one_more_socket,
    one_more_ticket,
    socket_name,
    too_many_tickets,
)
from sandpiper.adapters.dynamodb_values import from_item, to_item
from sandpiper.adapters.transactions import commit, turns
from sandpiper.errors import AuthenticationError, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef


class DynamoConnections:
    def __init__(self, dynamodb: DynamoDBClient, *, connections_table: str) -> None:
        self._dynamodb = dynamodb
        self._table = connections_table

    def issue_ticket(
        self, ticket: str, identity: Mapping[str, Any], *, expires_at: int, now: int | None = None
    ) -> None:
        row = {**_ticket_key(ticket), "identity": json.dumps(dict(identity)), "expires_at": expires_at}
        counted = [] if now is None else [one_more_ticket(self._table, identity["user"], now=now)]
        if not commit(self._dynamodb, [*counted, writes.put(self._table, row)]):
            raise too_many_tickets(now or 0)

    def redeem_ticket(self, ticket: str, *, now: int) -> dict[str, Any]:
        # Deleting tells who was first, in one step, however many come at once.
        answer = self._dynamodb.delete_item(
            TableName=self._table, Key=to_item(_ticket_key(ticket)), ReturnValues="ALL_OLD"
        )
        row = from_item(answer.get("Attributes", {}))
        if not row or row["expires_at"] <= now:
            raise AuthenticationError("The ticket is unknown, used or expired. Ask for a new one.")
        return _identity(row)

    def open(self, connection_id: str, identity: Mapping[str, Any], *, expires_at: int, now: int | None = None) -> None:
        row = {**_connection_key(connection_id), "identity": json.dumps(dict(identity)), "expires_at": expires_at}
        socket = socket_name(connection_id, expires_at)
        for _ in turns():
            counted = [] if now is None else [self._counted(identity["user"], socket, now)]
            if commit(self._dynamodb, [*counted, writes.put(self._table, row)]):
                break

    def identity(self, connection_id: str) -> dict[str, Any]:
        return _identity(self._connection(connection_id))

    def close(self, connection_id: str) -> None:
        # The connection goes first: from then on `subscribe` is refused, so nothing is left behind.
        answer = self._dynamodb.delete_item(
            TableName=self._table, Key=to_item(_connection_key(connection_id)), ReturnValues="ALL_OLD"
        )
        if row := from_item(answer.get("Attributes", {})):
            socket = socket_name(connection_id, row["expires_at"])
            one_less_socket(self._dynamodb, self._table, _identity(row)["user"], socket)
        for run_key in list(self._sort_keys(_connection_pk(connection_id))):
            self.unsubscribe(connection_id, run_key.removeprefix("RUN#"))

    def subscribe(self, connection_id: str, run_id: str) -> None:
        expires_at = self._connection(connection_id)["expires_at"]
        forward, backward = _subscription_keys(connection_id, run_id)
        subscription = [
            writes.require(self._table, _connection_key(connection_id)),
            writes.put(self._table, {**forward, "expires_at": expires_at}),
            writes.put(self._table, {**backward, "expires_at": expires_at}),
        ]
        if not commit(self._dynamodb, subscription):
            raise _not_open(connection_id)

    def unsubscribe(self, connection_id: str, run_id: str) -> None:
        forward, backward = _subscription_keys(connection_id, run_id)
        # The row that `close` finds the others by goes last, so that a half-done removal can be done again.
        self._delete(backward)
        self._delete(forward)

    def subscribers(self, run_id: str) -> list[str]:
        return [key.removeprefix("CONN#") for key in self._sort_keys(f"RUN#{run_id}")]

    def _counted(self, user: str, socket: str, now: int) -> TransactWriteItemTypeDef:
        return one_more_socket(self._dynamodb, self._table, user, socket, now=now)

    def _connection(self, connection_id: str) -> dict[str, Any]:
        answer = self._dynamodb.get_item(
            TableName=self._table, Key=to_item(_connection_key(connection_id)), ConsistentRead=True
        )
        if "Item" not in answer:
            raise _not_open(connection_id)
        return from_item(answer["Item"])

    def _delete(self, key: Mapping[str, str]) -> None:
        self._dynamodb.delete_item(TableName=self._table, Key=to_item(key))

    def _sort_keys(self, pk: str) -> Iterator[str]:
        pages = self._dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues=to_item({":pk": pk}),
            ProjectionExpression="sk",
            ConsistentRead=True,
        )
        return (from_item(item)["sk"] for page in pages for item in page["Items"])


def _ticket_key(ticket: str) -> dict[str, str]:
    """Of the ticket's hash: who reads the table can open nothing with it."""
    return {"pk": f"TICKET#{hashlib.sha256(ticket.encode()).hexdigest()}", "sk": "TICKET"}


def _connection_pk(connection_id: str) -> str:
    return f"CONN#{connection_id}"


def _connection_key(connection_id: str) -> dict[str, str]:
    return {"pk": _connection_pk(connection_id), "sk": "CONN"}


def _subscription_keys(connection_id: str, run_id: str) -> tuple[dict[str, str], dict[str, str]]:
    connection, run = _connection_pk(connection_id), f"RUN#{run_id}"
    return {"pk": connection, "sk": run}, {"pk": run, "sk": connection}


def _identity(row: Mapping[str, Any]) -> dict[str, Any]:
    identity: dict[str, Any] = json.loads(row["identity"])
    return identity


def _not_open(connection_id: str) -> NotFound:
    return NotFound(f"The connection {connection_id} is not open.")
