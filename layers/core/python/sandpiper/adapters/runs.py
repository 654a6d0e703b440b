"""Runs and their event logs in DynamoDB.

`last_seq` on the run row numbers the events: whoever moves it from n to n + k writes events n + 1 … n + k in the same
transaction. `version` counts every other change of the row, so that a change is made to exactly what was read.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from sandpiper import limits
from sandpiper.adapters import keys, last_replies, live_words, slots, usage, writes
from sandpiper.adapters.dynamodb_values import from_item, to_item
from sandpiper.adapters.event_data import shrink
from sandpiper.adapters.event_log import EventLog
from sandpiper.adapters.inbox import Inbox, refuse_another
from sandpiper.adapters.inventory import take_inventory
from sandpiper.adapters.quotas import DynamoQuotas
from sandpiper.adapters.rows import event_to_row, expiry, run_from_row, run_to_row
from sandpiper.adapters.run_lists import RunLists
from sandpiper.adapters.transactions import commit, turns
from sandpiper.errors import Conflict, Fenced, NotFound, QuotaExceeded
from sandpiper.models.events import Event, NewEvent
from sandpiper.models.quota import Scope
from sandpiper.models.run import TERMINAL, ControlRequest, LastReply, MonthlyUsage, Page, Run, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

    from sandpiper.models.events import EventType
    from sandpiper.models.quota import Account
    from sandpiper.ports import Admission, Blobs, Clock, Inventory, Revision

REMEMBERED_RUNS = 128


class _Head(NamedTuple):
    """What a writer must know of a run to append to it."""

    last_seq: int
    attempt: int


class _Plan(NamedTuple):
    """What is to be written of a run that was just read; the events are small already."""

    changes: Mapping[str, Any]
    events: Sequence[NewEvent] = ()
    also: Sequence[TransactWriteItemTypeDef] = ()


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
        self._lists = RunLists(dynamodb, runs_table=runs_table)
        self._inbox = Inbox(dynamodb, runs_table=runs_table)
        self._quotas = DynamoQuotas(dynamodb, runs_table=runs_table)
        self._log = EventLog(dynamodb, runs_table=runs_table, events_table=events_table)
        self._blobs = blobs
        self._clock = clock
        self._retention_days = retention_days
        self._heads: dict[str, _Head] = {}

    def create(
        self, run: Run, events: Sequence[NewEvent], *, admit: Callable[[Account], Admission] | None = None
    ) -> Run:
        numbered = self._number(run.run_id, _Head(0, run.attempt), self._shrink(run.run_id, events))
        created = run.model_copy(update={"last_seq": len(numbered)})
        row = {**run_to_row(created), "version": 1, "expires_at": expiry(run.created_at, self._retention_days)}
        rows = [writes.put_new(self._runs_table, row), *self._event_puts(numbered)]
        for _ in turns():
            try:
                counted = list(self._quotas.start(run, admit))
            except QuotaExceeded:
                self._refuse_known(run.run_id)
                raise
            if commit(self._dynamodb, [*rows, *counted]):
                break
            self._refuse_known(run.run_id)
        return created

    def get(self, run_id: str) -> Run:
        return run_from_row(self._row(run_id))

    def list_by_owner(
        self, owner: str, *, status: str | None, repo: str | None, limit: int, cursor: str | None
    ) -> Page[Run]:
        return self._lists.of_owner(owner, {"status": status, "repo": repo}, limit=limit, cursor=cursor)

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
        plan = _Plan(changes, self._shrink(run_id, events))
        allowed = frozenset(allowed)

        def decide(run: Run) -> _Plan:
            _refuse_change(run, allowed, attempt)
            return plan

        return self._rewrite(run_id, decide)

    def revise(self, run_id: str, decide: Callable[[Run], Revision | None]) -> Run:
        def plan(run: Run) -> _Plan | None:
            revision = decide(run)
            return _Plan(revision.changes, self._shrink(run_id, revision.events)) if revision else None

        return self._rewrite(run_id, plan)

    def events(self, run_id: str, *, after: int, limit: int) -> list[Event]:
        return [Event.model_validate(event) for event in self._log.read(run_id, after=after, limit=limit)]

    def show_words(self, run_id: str, words: Mapping[str, Any], *, attempt: int) -> None:
        live_words.put(self._dynamodb, self._events_table, run_id, words, attempt=attempt, now=self._clock.now())

    def put_reply(self, run_id: str, reply: LastReply, *, attempt: int) -> None:
        last_replies.put(self._dynamodb, self._runs_table, run_id, reply, attempt=attempt)

    def last_reply(self, run_id: str) -> LastReply | None:
        return last_replies.get(self._dynamodb, self._runs_table, run_id)

    def put_control(
        self,
        run_id: str,
        request: Mapping[str, Any],
        *,
        allowed: Iterable[Status] | None = None,
        event: EventType | None = None,
        key: str | None = None,
        changes: Mapping[str, Any] | None = None,
    ) -> ControlRequest:
        asked = ControlRequest.model_validate({"at": self._clock.now(), **request, "n": 0})
        possible, stored = None if allowed is None else frozenset(allowed), asked

        def decide(run: Run) -> _Plan | None:
            nonlocal stored
            known = self._inbox.sent_with(run_id, key) if key else None
            if known is not None:
                refuse_another(known, request)
                stored = known
                return None
            if possible is not None:
                _refuse_change(run, possible, None)
            stored = asked.model_copy(update={"n": run.last_inbox + 1})
            plan = self._storing(run, stored, event, key)
            return plan._replace(changes={**plan.changes, **(changes or {})})

        self._rewrite(run_id, decide)
        return stored

    def controls(self, run_id: str, *, after: int) -> list[ControlRequest]:
        return self._inbox.read(run_id, after=after)

    def usage_of(self, owner: str, month: str) -> MonthlyUsage:
        answer = self._dynamodb.get_item(
            TableName=self._runs_table, Key=to_item(keys.usage_key(Scope("user", owner), month)), ConsistentRead=True
        )
        return usage.from_row(month, from_item(answer.get("Item", {})))

    def inventory(self) -> Inventory:
        return take_inventory(self._dynamodb, self._runs_table)

    def _rewrite(self, run_id: str, decide: Callable[[Run], _Plan | None]) -> Run:
        for _ in turns():
            row = self._row(run_id)
            before = run_from_row(row)
            plan = decide(before)
            if plan is None:
                return before
            after = self._changed(before, plan.changes, len(plan.events))
            numbered = self._number(run_id, _Head(before.last_seq, after.attempt), plan.events)
            row_writes = self._row_writes(before, after, row["version"])
            if commit(self._dynamodb, [*row_writes, *plan.also, *self._event_puts(numbered)]):
                break
        self._heads.pop(run_id, None)
        return after

    def _storing(self, run: Run, control: ControlRequest, event: EventType | None, key: str | None) -> _Plan:
        told = [NewEvent(type=event, data={"n": control.n, "by": control.by, **control.data})] if event else []
        expires_at = expiry(run.created_at, self._retention_days)
        inbox_puts = self._inbox.put(run.run_id, control, key=key, expires_at=expires_at)
        return _Plan({"last_inbox": control.n}, self._shrink(run.run_id, told), inbox_puts)

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
        return writes.update(
            self._runs_table, keys.run_key(run_id), changes=changes, condition=condition, values=values
        )

    def _row_writes(self, before: Run, after: Run, version: int) -> Iterator[TransactWriteItemTypeDef]:
        old, new = run_to_row(before), run_to_row(after)
        changes = {name: value for name, value in new.items() if value != old[name]} | {"version": version + 1}
        condition, values = "#version = :version", {"version": version}
        if after.last_seq != before.last_seq:
            condition, values = f"{condition} AND #last_seq = :last_seq", {**values, "last_seq": before.last_seq}
        key = keys.run_key(after.run_id)
        yield writes.update(self._runs_table, key, changes=changes, condition=condition, values=values)
        if after.is_terminal:
            yield last_replies.forget(self._runs_table, after.run_id)
        elif after.attempt != before.attempt:
            expires_at = expiry(after.created_at, self._retention_days)
            yield last_replies.give_to(self._runs_table, after.run_id, attempt=after.attempt, expires_at=expires_at)
        for scope in after.scopes:
            if used := usage.difference(before.usage, after.usage):
                yield usage.add(self._runs_table, scope, after.updated_at, used)
            if after.is_terminal:
                yield slots.give_back(self._runs_table, scope, after.run_id)
            if after.status != before.status and (after.is_terminal or after.status == "provisioning"):
                yield slots.note_dispatch(self._runs_table, scope, after.run_id)

    def _event_puts(self, events: Sequence[Event]) -> Iterator[TransactWriteItemTypeDef]:
        if len(events) > limits.EVENTS_PER_TRANSACTION:
            message = f"{len(events)} events in one transaction"
            raise ValueError(message)
        for event in events:
            row = event_to_row(event, expiry(event.ts, self._retention_days))
            yield writes.put_new(self._events_table, row, key="run_id")

    def _refuse_known(self, run_id: str) -> None:
        if self._item(run_id) is not None:
            raise Conflict(f"There is a run {run_id} already.")

    def _row(self, run_id: str) -> dict[str, Any]:
        row = self._item(run_id)
        if row is None:
            raise NotFound(f"There is no run {run_id}.")
        return row

    def _item(self, run_id: str) -> dict[str, Any] | None:
        answer = self._dynamodb.get_item(
            TableName=self._runs_table, Key=to_item(keys.run_key(run_id)), ConsistentRead=True
        )
        return from_item(answer["Item"]) if "Item" in answer else None


def _refuse_change(run: Run, allowed: frozenset[Status], attempt: int | None) -> None:
    if attempt is not None and (run.attempt != attempt or run.is_terminal):
        raise Fenced(f"Attempt {attempt} of {run.run_id} is over.")
    if run.status not in allowed:
        raise Conflict(f"The run is {run.status}, so this can't be done now.")
