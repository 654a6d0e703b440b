"""All-or-nothing writes to DynamoDB, and what to do when they do not go through.

| what happened | what we do |
|---|---|
| a condition does not hold | the answer is False: somebody was faster; the caller reads again and decides |
| the rows are in another transaction, throttling | the same request again, after a pause |
| no answer: it may have been written | the same request with the same token: DynamoDB does it once |
"""

from __future__ import annotations

import random
import time
import uuid
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnectionError

from sandpiper.adapters.aws import error_code
from sandpiper.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

TRIES = 60  # fifty runs of one owner that start at once all get through
FIRST_PAUSE_SECONDS = 0.01
LONGEST_PAUSE_SECONDS = 0.5
GIVE_UP_SECONDS = 20  # a try against a dead endpoint takes seconds

_TRANSIENT_CODES = frozenset(
    {
        "TransactionInProgressException",
        "TransactionConflictException",
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "RequestLimitExceeded",
        "InternalServerError",
        "ServiceUnavailable",
    }
)
_TRANSIENT_REASONS = frozenset({"None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})


def turns() -> Iterator[int]:
    """Tries of something that others do at the same time, with growing random pauses between them."""
    end = time.monotonic() + GIVE_UP_SECONDS
    for turn in range(TRIES):
        if time.monotonic() > end:
            break
        if turn:
            longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**turn)
            time.sleep(random.uniform(0, longest))  # noqa: S311 - spreads load, protects nothing
        yield turn
    raise Unavailable("The database is busy. Try again in a moment.")


def commit(dynamodb: DynamoDBClient, writes: Sequence[TransactWriteItemTypeDef]) -> bool:
    """Do all writes, or none because a condition does not hold. Raises Unavailable when it never got an answer."""
    token = uuid.uuid4().hex
    for _ in turns():
        try:
            dynamodb.transact_write_items(TransactItems=writes, ClientRequestToken=token)
        except ClientError as error:
            if _is_refused(error):
                return False
            if not _is_transient(error):
                raise
        except (HTTPClientError, NoConnectionError):
            continue
        else:
            break
    return True


def _is_refused(error: ClientError) -> bool:
    return "ConditionalCheckFailed" in _reasons(error)


def _is_transient(error: ClientError) -> bool:
    if error_code(error) == "TransactionCanceledException":
        return _reasons(error) <= _TRANSIENT_REASONS
    return error_code(error) in _TRANSIENT_CODES


def _reasons(error: ClientError) -> set[str]:
    response: dict[str, Any] = dict(error.response)
    return {str(reason.get("Code", "None")) for reason in response.get("CancellationReasons", ())}
