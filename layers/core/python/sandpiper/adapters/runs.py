"""Runs and their event logs in DynamoDB.

`last_seq` on the run row numbers the events: whoever moves it from n to n + k writes events n + 1 … n + k in the same
transaction. `version` counts every other change of the row, so that a change is made to exactly what was read.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from sandpiper import limits
from sandpiper.adapters import cursors, keys, slots, writes
from sandpiper.adapters.dynamodb_values import from_item, to_item
from sandpiper.adapters.event_data import shrink
from sandpiper.adapters.event_log import EventLog
from sandpiper.adapters.rows import (
    control_from_row,
    control_to_row,
    event_to_row,
    expiry,
    run_from_row,
    run_to_row,
)
from sandpiper.adapters.transactions import commit, turns
from sandpiper.errors import Conflict, Fenced, NotFound
from sandpiper.models.events import Event, NewEvent
from sandpiper.models.run import TERMINAL, ControlRequest, Page, Run, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import QueryInputTypeDef, TransactWriteItemTypeDef

    from sandpiper.ports import Blobs, Clock

REMEMBERED_RUNS = 128


class _Head(NamedTuple):
    """What a writer must know of a run to append to it."""

    last_seq: int
    attempt: int


class DynamoRuns:
    def __init__(
        self,
        dynamodb: DynamoDBClient,
        *,
        runs_table: str,
        events_table: str,
        blobs: Blobs,
        clock: Clock,
        retention_days: int = limits.RUN_DAYS,
    ) -> None:
        self._dynamodb = dynamodb
        self._runs_table = runs_table
        self._events_table = events_table
        self._log = EventLog(dynamodb, runs_table=runs_table, events_table=events_table)
        self._blobs = blobs
        self._clock = clock
        self._retention_days = retention_days
        self._heads: dict[str, _Head] = {}

    def create(self, run: Run, events: Sequence[NewEvent]) -> Run:
        numbered = self._number(run.run_id, _Head(0, run.attempt), self._shrink(run.run_id, events))
        created = run.model_copy(update={"last_seq": len(numbered)})
        row = {**run_to_row(created), "version": 1, "expires_at": expiry(run.created_at, self._retention_days)}
        if not commit(self._dynamodb, [writes.put_new(self._runs_table, row), *self._event_puts(numbered)]):
            raise Conflict(f"There is a run {run.run_id} already.")
        return created

    def get(self, run_id: str) -> Run:
        return run_from_row(self._row(run_id))

    def list_by_owner(
        self, owner: str, *, status: str | None, repo: str | None, limit: int, cursor: str | None
    ) -> Page[Run]:
        query = self._owner_query(owner, {"status": status, "repo": repo}, limit)
        if cursor is not None:
            query["ExclusiveStartKey"] = to_item(_index_key(owner, cursors.decode(cursor, owner)))
        # One more than asked for tells whether a next page would be empty.
        rows = list(itertools.islice(self._query(query), limit + 1))
        more = len(rows) > limit
        return Page[Run](
            items=tuple(run_from_row(row) for row in rows[:limit]),
            cursor=cursors.encode(owner, rows[limit - 1]["created_key"]) if more else None,
        )

    def append(self, run_id: str, events: Sequence[NewEvent], *, attempt: int | None = None) -> list[Event]:
        appended: list[Event] = []
        for chunk in itertools.batched(events, limits.EVENTS_PER_TRANSACTION, strict=False):
            appended += self._append_chunk(run_id, self._shrink(run_id, chunk), attempt)
        return appended

    def change(
        self,
        run_id: str,
        *,
        allowed: Iterable[Status],
        changes: Mapping[str, Any],
        events: Sequence[NewEvent] = (),
        attempt: int | None = None,
    ) -> Run:
        allowed, events = frozenset(allowed), self._shrink(run_id, events)
        for _ in turns():
            row = self._row(run_id)
            before = run_from_row(row)
            _refuse_change(before, allowed, attempt)
            after = self._changed(before, changes, len(events))
            numbered = self._number(run_id, _Head(before.last_seq, after.attempt), events)
            row_writes = self._row_writes(before, after, row["version"])
            if commit(self._dynamodb, [*row_writes, *self._event_puts(numbered)]):
                break
        self._heads.pop(run_id, None)
        return after

    def events(self, run_id: str, *, after: int, limit: int) -> list[Event]:
        return [Event.model_validate(event) for event in self._log.read(run_id, after=after, limit=limit)]

    def put_control(self, run_id: str, request: Mapping[str, Any]) -> ControlRequest:
        for _ in turns():
            row = self._row(run_id)
            values = {"at": self._clock.now(), **request, "n": row["last_inbox"] + 1}
            control = ControlRequest.model_validate(values)
            if commit(self._dynamodb, self._control_writes(row, control)):
                break
        return control

    def controls(self, run_id: str, *, after: int) -> list[ControlRequest]:
        query: QueryInputTypeDef = {
            "TableName": self._runs_table,
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :first AND :last",
            "ExpressionAttributeValues": to_item(
                {":pk": keys.run_pk(run_id), ":first": keys.inbox_sk(after + 1), ":last": keys.LAST_INBOX}
            ),
            "ConsistentRead": True,
        }
        return [control_from_row(row) for row in self._query(query)]

    def live(self, *, unchanged_since: datetime) -> Iterator[Run]:
        statuses = {f":{status}": status for status in TERMINAL}
        pages = self._dynamodb.get_paginator("scan").paginate(
            TableName=self._runs_table,
            FilterExpression=f"sk = :run AND updated_at < :moment AND NOT #status IN ({', '.join(statuses)})",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues=to_item(
                {":run": keys.RUN, ":moment": keys.timestamp(unchanged_since), **statuses}
            ),
        )
        return (run_from_row(from_item(item)) for page in pages for item in page["Items"])

    def _append_chunk(self, run_id: str, events: Sequence[NewEvent], attempt: int | None) -> list[Event]:
        head = self._heads.pop(run_id, None)
        for _ in turns():
            if head is None or attempt not in {None, head.attempt}:
                head = self._head(run_id, attempt)
            numbered = self._number(run_id, head, events)
            count_write = self._count_write(run_id, head, numbered, attempt)
            if commit(self._dynamodb, [count_write, *self._event_puts(numbered)]):
                break
            head = None
        self._remember(run_id, _Head(numbered[-1].seq, numbered[-1].attempt))
        return numbered

    def _head(self, run_id: str, attempt: int | None) -> _Head:
        row = self._log.run_head(run_id)
        if attempt is not None and (row["attempt"] != attempt or row["status"] in TERMINAL):
            raise Fenced(f"Attempt {attempt} of {run_id} is over.")
        return _Head(row["last_seq"], row["attempt"])

    def _remember(self, run_id: str, head: _Head) -> None:
        if len(self._heads) >= REMEMBERED_RUNS:
            self._heads.clear()
        self._heads[run_id] = head

    def _shrink(self, run_id: str, events: Sequence[NewEvent]) -> list[NewEvent]:
        return [shrink(event, run_id, self._blobs) for event in events]

    def _number(self, run_id: str, head: _Head, events: Sequence[NewEvent]) -> list[Event]:
        now = self._clock.now()
        return [
            Event(run_id=run_id, seq=seq, ts=now, attempt=head.attempt, type=event.type, data=event.data)
            for seq, event in enumerate(events, start=head.last_seq + 1)
        ]

    def _changed(self, before: Run, changes: Mapping[str, Any], events: int) -> Run:
        merged = {**dict(before), **changes, "last_seq": before.last_seq + events, "updated_at": self._clock.now()}
        after = Run.model_validate(merged)
        # Nobody may be woken on the token of a run that has ended.
        return after.model_copy(update={"resume_token": None}) if after.is_terminal else after

    def _count_write(
        self, run_id: str, head: _Head, numbered: Sequence[Event], attempt: int | None
    ) -> TransactWriteItemTypeDef:
        condition, values = "#last_seq = :last_seq AND #attempt = :attempt", head._asdict()
        if attempt is not None:
            condition += f" AND NOT #status IN ({', '.join(f':{status}' for status in TERMINAL)})"
            values |= {status: status for status in TERMINAL}
        changes = {"last_seq": numbered[-1].seq, "updated_at": keys.timestamp(numbered[-1].ts)}
        return writes.update(self._runs_table, _run_key(run_id), changes=changes, condition=condition, values=values)

    def _row_writes(self, before: Run, after: Run, version: int) -> Iterator[TransactWriteItemTypeDef]:
        old, new = run_to_row(before), run_to_row(after)
        changes = {name: value for name, value in new.items() if value != old[name]} | {"version": version + 1}
        condition, values = "#version = :version", {"version": version}
        if after.last_seq != before.last_seq:
            condition, values = f"{condition} AND #last_seq = :last_seq", {**values, "last_seq": before.last_seq}
        key = _run_key(after.run_id)
        yield writes.update(self._runs_table, key, changes=changes, condition=condition, values=values)
        if after.is_terminal:
            yield slots.give_back(self._runs_table, after.owner, after.run_id)
        if after.status != before.status and (after.is_terminal or after.status == "provisioning"):
            yield slots.note_dispatch(self._runs_table, after.owner, after.run_id)

    def _event_puts(self, events: Sequence[Event]) -> Iterator[TransactWriteItemTypeDef]:
        if len(events) > limits.EVENTS_PER_TRANSACTION:
            message = f"{len(events)} events in one transaction"
            raise ValueError(message)
        for event in events:
            row = event_to_row(event, expiry(event.ts, self._retention_days))
            yield writes.put_new(self._events_table, row, key="run_id")

    def _control_writes(self, row: Mapping[str, Any], control: ControlRequest) -> list[TransactWriteItemTypeDef]:
        changes = {"last_inbox": control.n, "version": row["version"] + 1}
        condition, values = "#version = :version", {"version": row["version"]}
        inbox_row = control_to_row(row["run_id"], control, row["expires_at"])
        return [
            writes.update(
                self._runs_table, _run_key(row["run_id"]), changes=changes, condition=condition, values=values
            ),
            writes.put_new(self._runs_table, inbox_row),
        ]

    def _row(self, run_id: str) -> dict[str, Any]:
        answer = self._dynamodb.get_item(TableName=self._runs_table, Key=to_item(_run_key(run_id)), ConsistentRead=True)
        if "Item" not in answer:
            raise NotFound(f"There is no run {run_id}.")
        return from_item(answer["Item"])

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


def _run_key(run_id: str) -> dict[str, str]:
    return {"pk": keys.run_pk(run_id), "sk": keys.RUN}


def _index_key(owner: str, created_key: str) -> dict[str, str]:
    return {"owner": owner, "created_key": created_key, **_run_key(created_key.partition("#")[2])}


def _refuse_change(run: Run, allowed: frozenset[Status], attempt: int | None) -> None:
    if attempt is not None and (run.attempt != attempt or run.is_terminal):
        raise Fenced(f"Attempt {attempt} of {run.run_id} is over.")
    if run.status not in allowed:
        raise Conflict(f"The run is {run.status}, so this can't be done now.")
