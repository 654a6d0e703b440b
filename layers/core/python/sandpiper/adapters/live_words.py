"""What the model is just saying: one row per run beside its events, written over again and again.

The table's stream carries every version of it to whoever follows the run; readers of the log never come across it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from sandpiper import limits
from sandpiper.adapters import keys
from sandpiper.adapters.aws import error_code
from sandpiper.adapters.dynamodb_values import to_item
from sandpiper.adapters.event_log import WORDS, WORDS_SEQ
from sandpiper.errors import Fenced

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from mypy_boto3_dynamodb import DynamoDBClient


def put(
    dynamodb: DynamoDBClient, table: str, run_id: str, words: Mapping[str, Any], *, attempt: int, now: datetime
) -> None:
    """Raises Fenced if a later attempt has spoken. The run's row is left alone: whoever appends events writes there."""
    row = {
        "run_id": run_id,
        "seq": WORDS_SEQ,
        "ts": keys.timestamp(now),
        "attempt": attempt,
        "type": WORDS,
        "data": json.dumps(dict(words)),
        "expires_at": int(now.timestamp()) + limits.WORDS_KEPT_SECONDS,
    }
    try:
        dynamodb.put_item(
            TableName=table,
            Item=to_item(row),
            ConditionExpression="attribute_not_exists(run_id) OR attempt <= :attempt",
            ExpressionAttributeValues=to_item({":attempt": attempt}),
        )
    except ClientError as error:
        if error_code(error) == "ConditionalCheckFailedException":
            raise Fenced(f"Attempt {attempt} of {run_id} is over.") from error
        raise
