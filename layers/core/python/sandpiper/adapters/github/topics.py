"""Which run an issue or a pull request is about: small rows of the runs table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from sandpiper import limits
from sandpiper.adapters import keys
from sandpiper.adapters.aws import error_code
from sandpiper.adapters.dynamodb_values import from_item, to_item
from sandpiper.adapters.rows import expiry
from sandpiper.logic.github.places import numbers_of, place_name

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from sandpiper.models.run import Run


class DynamoTopics:
    def __init__(self, dynamodb: DynamoDBClient, *, runs_table: str) -> None:
        self._dynamodb, self._table = dynamodb, runs_table

    def note(self, run: Run) -> None:
        if run.spec.github:
            for number in numbers_of(run):
                self._note(run, keys.topic_key(place_name(run.spec.github), number))

    def _note(self, run: Run, key: dict[str, str]) -> None:
        created = keys.created_key(run.created_at, run.run_id)
        row = {**key, "run_id": run.run_id, "noted": created, "expires_at": expiry(run.created_at, limits.RUN_DAYS)}
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                Item=to_item(row),
                ConditionExpression="attribute_not_exists(pk) OR noted < :created",
                ExpressionAttributeValues=to_item({":created": created}),
            )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise

    def latest(self, place: str, number: int) -> str | None:
        key = to_item(keys.topic_key(place, number))
        answer = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        return str(from_item(answer["Item"])["run_id"]) if "Item" in answer else None
