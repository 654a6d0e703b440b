"""Everything that is kept about runs, in one pass over the runs table."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sandpiper.adapters import keys
from sandpiper.adapters.dynamodb_values import from_item, to_item
from sandpiper.adapters.rows import moment
from sandpiper.models.quota import Scope
from sandpiper.ports import Inventory, RunHead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from sandpiper.models.quota import ScopeKind

_READ = ("pk", "sk", "status", "updated_at", "active", "run_id")
_WANTED = "sk IN (:run, :secrets, :slots) OR begins_with(sk, :wait) OR begins_with(sk, :called)"


def take_inventory(dynamodb: DynamoDBClient, table: str) -> Inventory:
    runs: dict[str, RunHead] = {}
    secrets: set[str] = set()
    slots: defaultdict[Scope, set[str]] = defaultdict(set)
    for row in _rows(dynamodb, table):
        match row["sk"]:
            case keys.RUN:
                runs[row["run_id"]] = RunHead(row["run_id"], row["status"], moment(row["updated_at"]))
            case keys.SECRETS:
                secrets.add(keys.run_of(row["pk"]))
            case keys.SLOTS:
                slots[_scope_of(row["pk"])] |= row.get("active", set())
            case _:
                slots[_scope_of(row["pk"])].add(row["run_id"])
    return Inventory(runs, frozenset(secrets), {scope: frozenset(found) for scope, found in slots.items() if found})


def _rows(dynamodb: DynamoDBClient, table: str) -> Iterator[dict[str, Any]]:
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=table,
        FilterExpression=_WANTED,
        ProjectionExpression=", ".join(f"#{name}" for name in _READ),
        ExpressionAttributeNames={f"#{name}": name for name in _READ},
        ExpressionAttributeValues=to_item(
            {
                ":run": keys.RUN,
                ":secrets": keys.SECRETS,
                ":slots": keys.SLOTS,
                ":wait": keys.WAIT,
                ":called": keys.CALLED,
            }
        ),
    )
    return (from_item(item) for page in pages for item in page["Items"])


def _scope_of(pk: str) -> Scope:
    kind: ScopeKind = "user" if pk.startswith(keys.SLOTS_OF["user"]) else "org"
    return Scope(kind, pk.removeprefix(keys.SLOTS_OF[kind]))
