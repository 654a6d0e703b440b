"""The inbox of a run: one row per request, numbered by the run row, and one per key that a request was sent with."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from sandpiper.adapters import keys, writes
from sandpiper.adapters.dynamodb_values import from_item, to_item
from sandpiper.adapters.rows import control_from_row, control_to_row
from sandpiper.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

    from sandpiper.models.run import ControlRequest


class Inbox:
    def __init__(self, dynamodb: DynamoDBClient, *, runs_table: str) -> None:
        self._dynamodb = dynamodb
        self._table = runs_table

    def read(self, run_id: str, *, after: int) -> list[ControlRequest]:
        pages = self._dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
            ExpressionAttributeValues=to_item(
                {":pk": keys.run_pk(run_id), ":first": keys.inbox_sk(after + 1), ":last": keys.LAST_INBOX}
            ),
            ConsistentRead=True,
        )
        return [control_from_row(from_item(item)) for page in pages for item in page["Items"]]

    def sent_with(self, run_id: str, key: str) -> ControlRequest | None:
        """The request that a key was first used for."""
        answer = self._dynamodb.get_item(TableName=self._table, Key=to_item(_key_key(run_id, key)), ConsistentRead=True)
        return control_from_row(from_item(answer["Item"])) if "Item" in answer else None

    def put(
        self, run_id: str, control: ControlRequest, *, key: str | None, expires_at: int
    ) -> list[TransactWriteItemTypeDef]:
        row = control_to_row(run_id, control, expires_at)
        rows = [row] if key is None else [row, {**row, **_key_key(run_id, key)}]
        return [writes.put_new(self._table, row) for row in rows]


def refuse_another(known: ControlRequest, request: Mapping[str, Any]) -> None:
    """A key stands for one request. Raises Conflict for a second one."""
    if (known.action, known.by, known.data) != (request["action"], request["by"], request.get("data", {})):
        raise Conflict("This Idempotency-Key was used with another body.")


def _key_key(run_id: str, key: str) -> dict[str, str]:
    """Of the key's hash, which has one length and no character that means anything."""
    return {"pk": keys.run_pk(run_id), "sk": f"{keys.INBOX_KEY}{hashlib.sha256(key.encode()).hexdigest()}"}
