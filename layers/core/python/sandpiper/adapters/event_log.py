"""The event log and the head of a run, read as plain dictionaries.

For the functions that stand between the log and the sockets: importing the models would double their start-up time.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sandpiper.adapters import keys
from sandpiper.adapters.dynamodb_values import from_item, to_item
from sandpiper.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, QueryInputTypeDef

WORDS_SEQ = 0  # one row of each run, before its events: what the model is just saying
WORDS = "agent_delta"
ENDED = frozenset({"completed", "failed", "cancelled", "timed_out"})  # as in models.run, which costs an import
HEAD = ("owner", "org", "last_seq", "status", "attempt")


def event_from_item(item: Mapping[str, AttributeValueTypeDef]) -> dict[str, Any]:
    """An event from its stored item, which is also the image that the table's stream hands out."""
    row = from_item(item)
    return {
        "run_id": row["run_id"],
        "seq": row["seq"],
        "ts": row["ts"],
        "attempt": row["attempt"],
        "type": row["type"],
        "data": json.loads(row["data"]),
    }


class EventLog:
    def __init__(self, dynamodb: DynamoDBClient, *, runs_table: str, events_table: str) -> None:
        self._dynamodb = dynamodb
        self._runs_table = runs_table
        self._events_table = events_table

    def read(self, run_id: str, *, after: int, limit: int) -> list[dict[str, Any]]:
        """At most `limit` events with a number above `after`, in order."""
        events: list[dict[str, Any]] = []
        for page in self._pages(run_id, after, limit):
            events += page
            if len(events) >= limit:
                break
        return events[:limit]

    def run_head(self, run_id: str) -> dict[str, Any]:
        """Whose run it is and how far it got. Strongly consistent. Raises NotFound."""
        answer = self._dynamodb.get_item(
            TableName=self._runs_table,
            Key=to_item({"pk": keys.run_pk(run_id), "sk": keys.RUN}),
            ConsistentRead=True,
            ProjectionExpression=", ".join(f"#{name}" for name in HEAD),
            ExpressionAttributeNames={f"#{name}": name for name in HEAD},
        )
        if "Item" not in answer:
            raise NotFound(f"There is no run {run_id}.")
        return {"org": None, **from_item(answer["Item"])}

    def heads(self, owner: str, *, limit: int) -> list[dict[str, Any]]:
        answer = self._dynamodb.query(
            TableName=self._runs_table,
            IndexName=keys.OWNER_INDEX,
            KeyConditionExpression="#owner = :owner",
            ExpressionAttributeNames={"#owner": "owner", "#status": "status"},
            ExpressionAttributeValues=to_item({":owner": owner}),
            ProjectionExpression="run_id, #status, last_seq",
            ScanIndexForward=False,
            Limit=limit,
        )
        return [self._head_now(from_item(item)) for item in answer["Items"]]

    def _head_now(self, head: dict[str, Any]) -> dict[str, Any]:
        """An index may be a moment behind, which for a run that has ended makes no difference."""
        now = head if head["status"] in ENDED else self.run_head(head["run_id"])
        return {"run_id": head["run_id"], "status": now["status"], "last_seq": now["last_seq"]}

    def _pages(self, run_id: str, after: int, limit: int) -> Iterator[list[dict[str, Any]]]:
        query: QueryInputTypeDef = {
            "TableName": self._events_table,
            "KeyConditionExpression": "run_id = :run AND seq > :after",
            "ExpressionAttributeValues": to_item({":run": run_id, ":after": after}),
            "ConsistentRead": True,
            "Limit": limit,
        }
        while True:
            answer = self._dynamodb.query(**query)
            yield [event_from_item(item) for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                return
            query["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
