"""The model's last reply in a run: one row beside the run's own, written over again and again.

It belongs to one attempt. The write that gives the run to the next attempt gives it this row, too, and the write that
ends the run deletes it. So whoever comes too late is refused here as everywhere, and the run's own row is left alone:
whoever appends events writes there at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from sandpiper.adapters import keys, writes
from sandpiper.adapters.aws import error_code
from sandpiper.adapters.dynamodb_values import from_item, to_item
from sandpiper.errors import Fenced
from sandpiper.models.run import LastReply

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef


def give_to(table: str, run_id: str, *, attempt: int, expires_at: int) -> TransactWriteItemTypeDef:
    """What the attempt before has stored stays."""
    return {
        "Update": {
            "TableName": table,
            "Key": to_item(keys.reply_key(run_id)),
            "UpdateExpression": "SET attempt = :attempt, expires_at = :expires_at",
            "ExpressionAttributeValues": to_item({":attempt": attempt, ":expires_at": expires_at}),
        }
    }


def forget(table: str, run_id: str) -> TransactWriteItemTypeDef:
    return writes.delete(table, keys.reply_key(run_id))


def put(dynamodb: DynamoDBClient, table: str, run_id: str, reply: LastReply, *, attempt: int) -> None:
    """Raises Fenced if the row is another attempt's, or gone with the run."""
    try:
        dynamodb.update_item(
            TableName=table,
            Key=to_item(keys.reply_key(run_id)),
            UpdateExpression="SET reply = :reply",
            ConditionExpression="attempt = :attempt",
            ExpressionAttributeValues=to_item({":reply": reply.model_dump_json(), ":attempt": attempt}),
        )
    except ClientError as error:
        if error_code(error) == "ConditionalCheckFailedException":
            raise Fenced(f"Attempt {attempt} of {run_id} is over.") from error
        raise


def get(dynamodb: DynamoDBClient, table: str, run_id: str) -> LastReply | None:
    answer = dynamodb.get_item(TableName=table, Key=to_item(keys.reply_key(run_id)), ConsistentRead=True)
    row = from_item(answer.get("Item", {}))
    return LastReply.model_validate_json(row["reply"]) if "reply" in row else None
