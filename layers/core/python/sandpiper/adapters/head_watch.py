"""Which run waits for the CI of a commit: one row per commit in the runs table, gone when runs are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.adapters.dynamodb_values import from_item, to_item
from sandpiper.adapters.keys import watch_key
from sandpiper.adapters.rows import expiry

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from sandpiper.ports import Clock


class DynamoHeadWatch:
    def __init__(self, dynamodb: DynamoDBClient, *, runs_table: str, clock: Clock) -> None:
        self._dynamodb, self._table, self._clock = dynamodb, runs_table, clock

    def watch(self, place: str, sha: str, run_id: str) -> None:
        """By an update: the sandbox may put no rows into this table."""
        expires_at = expiry(self._clock.now(), limits.RUN_DAYS)
        self._dynamodb.update_item(
            TableName=self._table,
            Key=to_item(watch_key(place, sha)),
            UpdateExpression="SET run_id = :run_id, expires_at = :expires_at",
            ExpressionAttributeValues=to_item({":run_id": run_id, ":expires_at": expires_at}),
        )

    def watcher(self, place: str, sha: str) -> str | None:
        key = to_item(watch_key(place, sha))
        answer = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        return str(from_item(answer["Item"])["run_id"]) if "Item" in answer else None
