"""How many sockets a user has open, and how many tickets were asked for, beside what they count.

| row | pk | sk |
|---|---|---|
| a user's open sockets | `SOCKETS#<user>` | `SOCKETS` |
| tickets of a user in one minute | `TICKETS#<user>` | `MINUTE#<n>` |

Sockets are a set, not a number: one whose end nobody told us counts until it would have been closed anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper import limits
from sandpiper.adapters import writes
from sandpiper.adapters.dynamodb_values import from_item, to_item
from sandpiper.errors import QuotaExceeded

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

_MINUTE = 60


def one_more_socket(
    dynamodb: DynamoDBClient, table: str, user: str, socket: str, *, now: int
) -> TransactWriteItemTypeDef:
    """The write that counts a socket, on what was read. Raises QuotaExceeded."""
    row = _read(dynamodb, table, user)
    version, found = row.get("version", 0), row.get("open", set())
    still_open = {name for name in found if int(name.partition("#")[0]) > now}
    if len(still_open) >= limits.MAX_CONNECTIONS:
        raise too_many_sockets()
    expires_at = int(socket.partition("#")[0])
    return writes.update(
        table,
        _key(user),
        changes={"version": version + 1, "open": still_open | {socket}, "expires_at": expires_at},
        condition="#version = :version" if version else "attribute_not_exists(#version)",
        values={"version": version} if version else {},
    )


def one_less_socket(dynamodb: DynamoDBClient, table: str, user: str, socket: str) -> None:
    dynamodb.update_item(
        TableName=table,
        Key=to_item(_key(user)),
        UpdateExpression="ADD version :one DELETE #open :socket",
        ExpressionAttributeNames={"#open": "open"},
        ExpressionAttributeValues=to_item({":one": 1, ":socket": {socket}}),
    )


def socket_name(connection_id: str, expires_at: int) -> str:
    return f"{expires_at}#{connection_id}"


def one_more_ticket(table: str, user: str, *, now: int) -> TransactWriteItemTypeDef:
    minute = now // _MINUTE
    return {
        "Update": {
            "TableName": table,
            "Key": to_item({"pk": f"TICKETS#{user}", "sk": f"MINUTE#{minute}"}),
            "UpdateExpression": "ADD tickets :one SET expires_at = :end",
            "ConditionExpression": "attribute_not_exists(tickets) OR tickets < :most",
            "ExpressionAttributeValues": to_item(
                {":one": 1, ":end": (minute + 2) * _MINUTE, ":most": limits.TICKETS_PER_MINUTE}
            ),
        }
    }


def too_many_sockets() -> QuotaExceeded:
    return QuotaExceeded(f"You have {limits.MAX_CONNECTIONS} sockets open. Close one first.", retry_after=_MINUTE)


def too_many_tickets(now: int) -> QuotaExceeded:
    message = f"You may ask for {limits.TICKETS_PER_MINUTE} tickets in a minute."
    return QuotaExceeded(message, retry_after=_MINUTE - now % _MINUTE)


def _key(user: str) -> dict[str, str]:
    return {"pk": f"SOCKETS#{user}", "sk": "SOCKETS"}


def _read(dynamodb: DynamoDBClient, table: str, user: str) -> dict[str, Any]:
    answer = dynamodb.get_item(TableName=table, Key=to_item(_key(user)), ConsistentRead=True)
    return from_item(answer.get("Item", {}))
