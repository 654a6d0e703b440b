"""Who may run now, per user and per organization, in DynamoDB.

One row per scope holds the runs that have a slot (`active`) and a `version` that every change moves on. Waiting runs
are rows of their own, sorted by the time of their start. A run that was called up from the line keeps one with its
token until it is dispatched: whoever called it may have died before telling it, so the next release does.
Nothing enters or moves up except by a transaction on the version that was read, so the line has no races.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sandpiper.adapters import keys, writes
from sandpiper.adapters.dynamodb_values import from_item, to_item
from sandpiper.adapters.transactions import commit, turns
from sandpiper.ports import Held

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

    from sandpiper.models.quota import Scope

CALLED_AT_ONCE = 40  # each is two actions of a transaction, which takes 100


@dataclass(frozen=True)
class _Waiter:
    sk: str
    run_id: str
    token: str


@dataclass(frozen=True)
class _Line:
    """The slots of one scope as they were read, and what would become of them."""

    version: int = 0
    active: frozenset[str] = frozenset()
    called: dict[str, str] = field(default_factory=dict)
    waiting: tuple[_Waiter, ...] = ()

    def place(self, run_id: str) -> int:
        """1 is next; 0 is not in line."""
        return next((n for n, waiter in enumerate(self.waiting, start=1) if waiter.run_id == run_id), 0)

    def without(self, run_id: str) -> _Line:
        return replace(
            self,
            active=self.active - {run_id},
            called={run: token for run, token in self.called.items() if run != run_id},
            waiting=tuple(waiter for waiter in self.waiting if waiter.run_id != run_id),
        )

    def call_up(self, limit: int) -> _Line:
        free = min(max(limit - len(self.active), 0), CALLED_AT_ONCE)
        called = {waiter.run_id: waiter.token for waiter in self.waiting[:free]}
        return replace(
            self, active=self.active | called.keys(), called=self.called | called, waiting=self.waiting[free:]
        )

    def enter(self, waiter: _Waiter, limit: int) -> _Line:
        """With a slot if one is free and nobody waits for it, else in line behind whoever was started before."""
        if len(self.active) < limit and not self.waiting:
            return replace(self, active=self.active | {waiter.run_id})
        return replace(self, waiting=tuple(sorted((*self.waiting, waiter), key=lambda each: each.sk)))

    def with_token(self, run_id: str, token: str) -> _Line:
        """A repeated request comes with a new token, and only the new one wakes anybody."""
        waiting = (replace(waiter, token=token) if waiter.run_id == run_id else waiter for waiter in self.waiting)
        called = {run: token if run == run_id else old for run, old in self.called.items()}
        return replace(self, waiting=tuple(waiting), called=called)


class DynamoSlots:
    def __init__(self, dynamodb: DynamoDBClient, *, runs_table: str) -> None:
        self._dynamodb = dynamodb
        self._table = runs_table

    def acquire(self, scope: Scope, run_id: str, *, since: datetime, limit: int, token: str) -> int:
        waiter = _Waiter(keys.wait_sk(since, run_id), run_id, token)
        for _ in turns():
            before = self._read(scope)
            known = run_id in before.active or before.place(run_id) > 0
            after = before.with_token(run_id, token) if known else before.enter(waiter, limit)
            if self._write(scope, before, after):
                break
        return after.place(run_id)

    def held(self, scope: Scope) -> Held:
        line = self._read(scope)
        return Held(line.active, tuple(waiter.run_id for waiter in line.waiting))

    def release(self, scope: Scope, run_id: str | None, *, limit: int) -> list[tuple[str, str]]:
        for _ in turns():
            before = self._read(scope)
            after = (before.without(run_id) if run_id else before).call_up(limit)
            if self._write(scope, before, after):
                break
        return list(after.called.items())

    def _read(self, scope: Scope) -> _Line:
        pages = self._dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues=to_item({":pk": keys.slots_pk(scope)}),
            ConsistentRead=True,
        )
        return _line_from_rows([from_item(item) for page in pages for item in page["Items"]])

    def _write(self, scope: Scope, before: _Line, after: _Line) -> bool:
        if after == before:
            return True
        return commit(self._dynamodb, [self._slots_write(scope, after), *self._line_writes(scope, before, after)])

    def _slots_write(self, scope: Scope, line: _Line) -> TransactWriteItemTypeDef:
        changes = {"version": line.version + 1, "active": line.active or None}
        condition = "#version = :version" if line.version else "attribute_not_exists(#version)"
        values = {"version": line.version} if line.version else {}
        return writes.update(self._table, _slots_key(scope), changes=changes, condition=condition, values=values)

    def _line_writes(self, scope: Scope, before: _Line, after: _Line) -> list[TransactWriteItemTypeDef]:
        old, new = _line_rows(scope, before), _line_rows(scope, after)
        return [
            *(writes.delete(self._table, {"pk": row["pk"], "sk": sk}) for sk, row in old.items() if sk not in new),
            *(writes.put(self._table, row) for sk, row in new.items() if old.get(sk) != row),
        ]


def give_back(table: str, scope: Scope, run_id: str) -> TransactWriteItemTypeDef:
    """The write that frees the slot of a run that ends, in the same transaction; `release` then calls up the next."""
    return {
        "Update": {
            "TableName": table,
            "Key": to_item(_slots_key(scope)),
            "UpdateExpression": "ADD version :one DELETE active :run",
            "ExpressionAttributeValues": to_item({":one": 1, ":run": {run_id}}),
        }
    }


def note_dispatch(table: str, scope: Scope, run_id: str) -> TransactWriteItemTypeDef:
    """The write that notes, in the transaction that dispatches a run, that it need not be called again."""
    return writes.delete(table, {"pk": keys.slots_pk(scope), "sk": f"{keys.CALLED}{run_id}"})


def _slots_key(scope: Scope) -> dict[str, str]:
    return {"pk": keys.slots_pk(scope), "sk": keys.SLOTS}


def _line_rows(scope: Scope, line: _Line) -> dict[str, dict[str, str]]:
    """The rows of those who wait or were called up, by sort key."""
    called = (_Waiter(f"{keys.CALLED}{run_id}", run_id, token) for run_id, token in line.called.items())
    return {waiter.sk: {"pk": keys.slots_pk(scope), **asdict(waiter)} for waiter in (*line.waiting, *called)}


def _line_from_rows(rows: Sequence[dict[str, Any]]) -> _Line:
    slots = next((row for row in rows if row["sk"] == keys.SLOTS), {})
    return _Line(
        version=slots.get("version", 0),
        active=frozenset(slots.get("active", ())),
        called={row["run_id"]: row["token"] for row in rows if row["sk"].startswith(keys.CALLED)},
        waiting=tuple(
            _Waiter(row["sk"], row["run_id"], row["token"]) for row in rows if row["sk"].startswith(keys.WAIT)
        ),
    )
