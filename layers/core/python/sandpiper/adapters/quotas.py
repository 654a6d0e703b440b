"""Limits that an admin has set, and the starts that count against them, in DynamoDB.

| row | pk | sk |
|---|---|---|
| limits | `QUOTA#user#<name>`, `QUOTA#org#<name>` | `LIMITS` |
| times of the last starts | the same | `STARTS` |

The times are written on the version that was read, in the transaction that creates the run. The dollars of a month are
kept by `usage`; the same transaction is refused if they have passed the limit meanwhile.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sandpiper.adapters import keys, usage, writes
from sandpiper.adapters.dynamodb_values import from_item, to_item
from sandpiper.models.quota import Account, Quota

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

    from sandpiper.models.quota import Scope
    from sandpiper.models.run import Run
    from sandpiper.ports import Admission

_EXPIRE_DAYS = 2  # after the last start: none counts longer than a day


class _Read(NamedTuple):
    account: Account
    version: int


class DynamoQuotas:
    def __init__(self, dynamodb: DynamoDBClient, *, runs_table: str) -> None:
        self._dynamodb = dynamodb
        self._table = runs_table

    def account(self, scope: Scope, month: str) -> Account:
        return self._read(scope, month).account

    def limits_of(self, scope: Scope) -> Quota:
        answer = self._dynamodb.get_item(
            TableName=self._table, Key=to_item(keys.limits_key(scope)), ConsistentRead=True
        )
        return _limits(from_item(answer.get("Item", {})))

    def set_limits(self, scope: Scope, limits: Quota) -> None:
        row = {**keys.limits_key(scope), "limits": limits.model_dump_json(exclude_none=True)}
        self._dynamodb.put_item(TableName=self._table, Item=to_item(row))

    def start(self, run: Run, admit: Callable[[Account], Admission] | None) -> Iterator[TransactWriteItemTypeDef]:
        """The writes that count a start for each scope of a run, if `admit` has nothing against it."""
        for scope in run.scopes:
            if admit is None:
                yield usage.add(self._table, scope, run.created_at, usage.STARTED)
                continue
            account, version = self._read(scope, keys.month_of(run.created_at))
            admission = admit(account)
            below = admission.spent_below
            yield usage.add(self._table, scope, run.created_at, usage.STARTED, spent_below=below)
            if admission.starts is not None:
                yield self._starts_write(scope, admission.starts, version)

    def _read(self, scope: Scope, month: str) -> _Read:
        answer = self._dynamodb.query(
            TableName=self._table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues=to_item({":pk": keys.quota_pk(scope)}),
            ConsistentRead=True,
        )
        rows = {row["sk"]: row for row in map(from_item, answer["Items"])}
        starts = rows.get(keys.STARTS, {})
        spent = self._dynamodb.get_item(
            TableName=self._table, Key=to_item(keys.usage_key(scope, month)), ConsistentRead=True
        )
        account = Account(
            scope=scope,
            limits=_limits(rows.get(keys.LIMITS, {})),
            starts=tuple(datetime.fromtimestamp(time / 1000, UTC) for time in starts.get("times", ())),
            spent_usd=usage.from_row(month, from_item(spent.get("Item", {}))).cost_usd,
        )
        return _Read(account, starts.get("version", 0))

    def _starts_write(self, scope: Scope, starts: tuple[datetime, ...], version: int) -> TransactWriteItemTypeDef:
        return writes.update(
            self._table,
            {"pk": keys.quota_pk(scope), "sk": keys.STARTS},
            changes={
                "times": [int(start.timestamp() * 1000) for start in starts],
                "version": version + 1,
                "expires_at": int((starts[0] + timedelta(days=_EXPIRE_DAYS)).timestamp()),
            },
            condition="#version = :version" if version else "attribute_not_exists(#version)",
            values={"version": version} if version else {},
        )


def _limits(row: dict[str, Any]) -> Quota:
    return Quota.model_validate_json(row.get("limits", "{}"))
