"""The list of one owner's runs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from sandpiper import limits
from sandpiper.adapters import cursors, keys
from sandpiper.adapters.dynamodb_values import from_item, to_item
from sandpiper.adapters.rows import run_from_row
from sandpiper.models.run import Page, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import QueryInputTypeDef


class RunLists:
    def __init__(self, dynamodb: DynamoDBClient, *, runs_table: str) -> None:
        self._dynamodb = dynamodb
        self._runs_table = runs_table

    def of_owner(self, owner: str, filters: Mapping[str, str | None], *, limit: int, cursor: str | None) -> Page[Run]:
        query = self._owner_query(owner, filters, limit)
        if cursor is not None:
            query["ExclusiveStartKey"] = to_item(_index_key(owner, cursors.decode(cursor, owner)))
        # One more than asked for tells whether a next page would be empty.
        rows = list(itertools.islice(self._query(query), limit + 1))
        more = len(rows) > limit
        return Page[Run](
            items=tuple(run_from_row(row) for row in rows[:limit]),
            cursor=cursors.encode(owner, rows[limit - 1]["created_key"]) if more else None,
        )

    def _owner_query(self, owner: str, filters: Mapping[str, str | None], limit: int) -> QueryInputTypeDef:
        wanted = {name: value for name, value in filters.items() if value is not None}
        values = {"owner": owner, **wanted}
        query: QueryInputTypeDef = {
            "TableName": self._runs_table,
            "IndexName": keys.OWNER_INDEX,
            "KeyConditionExpression": "#owner = :owner",
            "ExpressionAttributeNames": {f"#{name}": name for name in values},
            "ExpressionAttributeValues": to_item({f":{name}": value for name, value in values.items()}),
            "ScanIndexForward": False,
            "Limit": max(limit + 1, limits.MAX_PAGE) if wanted else limit + 1,
        }
        if wanted:
            query["FilterExpression"] = " AND ".join(f"#{name} = :{name}" for name in wanted)
        return query

    def _query(self, query: QueryInputTypeDef) -> Iterator[dict[str, Any]]:
        while True:
            answer = self._dynamodb.query(**query)
            yield from map(from_item, answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            query["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _index_key(owner: str, created_key: str) -> dict[str, str]:
    return {"owner": owner, "created_key": created_key, **keys.run_key(created_key.partition("#")[2])}
