"""Who works on something that is to be done once: a row with an end, so that nobody who dies keeps it for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from sandpiper import limits
from sandpiper.adapters.aws import error_code
from sandpiper.adapters.dynamodb_values import to_item
from sandpiper.github_ports import Hold

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from sandpiper.ports import Clock


class DynamoHolds:
    def __init__(self, dynamodb: DynamoDBClient, *, table: str, clock: Clock) -> None:
        self._dynamodb, self._table, self._clock = dynamodb, table, clock

    def take(self, name: str, *, seconds: int) -> Hold | None:
        now = self._clock.now().timestamp()
        values = {"now": now, "until": now + seconds, "gone": int(now) + limits.GITHUB_DELIVERY_SECONDS, "one": 1}
        try:
            answer = self._update(
                name,
                "SET held_until = :until, expiration = :gone ADD tries :one",
                values,
                condition="attribute_not_exists(id) OR held_until < :now",
            )
        except ClientError as error:
            if error_code(error) == "ConditionalCheckFailedException":
                return None
            raise
        return Hold(again=answer["Attributes"]["tries"]["N"] != "1")

    def release(self, name: str, *, done: bool) -> None:
        until = self._clock.now().timestamp() + limits.GITHUB_DELIVERY_SECONDS if done else 0
        self._update(name, "SET held_until = :until", {"until": until}, condition="attribute_exists(id)")

    def _update(self, name: str, expression: str, values: dict[str, Any], *, condition: str) -> Any:
        return self._dynamodb.update_item(
            TableName=self._table,
            Key=to_item({"id": f"github#{name}"}),
            UpdateExpression=expression,
            ExpressionAttributeValues=to_item({f":{key}": value for key, value in values.items()}),
            ReturnValues="ALL_NEW",
            ConditionExpression=condition,
        )
