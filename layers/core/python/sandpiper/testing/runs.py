"""Runs and their event logs in memory: same rules, same refusals, same limits."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from sandpiper import limits
from sandpiper.adapters import cursors, event_log, keys, usage
from sandpiper.adapters.event_data import shrink
from sandpiper.adapters.inbox import refuse_another
from sandpiper.errors import Conflict, Fenced, NotFound
from sandpiper.models.events import Event, NewEvent
from sandpiper.models.quota import Scope
from sandpiper.models.run import ControlRequest, LastReply, MonthlyUsage, Page, Run, Status
from sandpiper.ports import Inventory, RunHead
from sandpiper.testing.clock import FakeClock
from sandpiper.testing.quotas import FakeQuotas
from sandpiper.testing.slots import FakeSlots
from sandpiper.testing.storage import FakeBlobs, FakeRunSecrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sandpiper.models.events import EventType
    from sandpiper.models.quota import Account
    from sandpiper.ports import Admission, Blobs, Clock, Revision


class FakeRuns:
    """Give it the slots and quotas that the code under test uses: runs count there, and free slots when they end."""

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        blobs: Blobs | None = None,
        slots: FakeSlots | None = None,
        quotas: FakeQuotas | None = None,
        secrets: FakeRunSecrets | None = None,
    ) -> None:
        self._clock = clock or FakeClock()
        self._blobs = blobs or FakeBlobs()
        self._slots = slots or FakeSlots()
        self._quotas = quotas or FakeQuotas()
        self._secrets = secrets or FakeRunSecrets()
        self._runs: dict[str, Run] = {}
        self._events: dict[str, list[Event]] = {}
        self._controls: dict[str, list[ControlRequest]] = {}
        self.shown: dict[str, list[dict[str, Any]]] = {}
        self._keys: dict[tuple[str, str], ControlRequest] = {}
        self._replies: dict[str, LastReply] = {}
        self._lock = threading.RLock()

    def create(
        self, run: Run, events: Sequence[NewEvent], *, admit: Callable[[Account], Admission] | None = None
    ) -> Run:
        with self._lock:
            if run.run_id in self._runs:
                raise Conflict(f"There is a run {run.run_id} already.")
            _refuse_too_many(events)
            self._quotas.start(run, admit)
            self._runs[run.run_id] = run.model_copy(update={"last_seq": 0})
            self._events[run.run_id] = []
            self._controls[run.run_id] = []
            self._write_events(run.run_id, events)
            return self._runs[run.run_id]

    def get(self, run_id: str) -> Run:
        with self._lock:
            if run_id not in self._runs:
                raise NotFound(f"There is no run {run_id}.")
            return self._runs[run_id]

    def list_by_owner(
        self, owner: str, *, status: str | None, repo: str | None, limit: int, cursor: str | None
    ) -> Page[Run]:
        before = cursors.decode(cursor, owner) if cursor is not None else None
        with self._lock:
            found = sorted(
                (
                    run
                    for run in self._runs.values()
                    if run.owner == owner
                    and status in {None, run.status}
                    and repo in {None, run.spec.repo}
                    and (before is None or _created_key(run) < before)
                ),
                key=_created_key,
                reverse=True,
            )
        more = len(found) > limit
        return Page[Run](
            items=tuple(found[:limit]), cursor=cursors.encode(owner, _created_key(found[limit - 1])) if more else None
        )

    def append(self, run_id: str, events: Sequence[NewEvent], *, attempt: int | None = None) -> list[Event]:
        with self._lock:
            run = self.get(run_id)
            _refuse_if_over(run, attempt)
            self._runs[run_id] = run.model_copy(update={"updated_at": self._clock.now()})
            return self._write_events(run_id, events)

    def change(
        self,
        run_id: str,
        *,
        allowed: Iterable[Status],
        changes: Mapping[str, Any],
        events: Sequence[NewEvent] = (),
        attempt: int | None = None,
    ) -> Run:
        with self._lock:
            run = self.get(run_id)
            _refuse_if_over(run, attempt)
            _refuse_status(run, allowed)
            return self._rewrite(run, changes, events)

    def revise(self, run_id: str, decide: Callable[[Run], Revision | None]) -> Run:
        with self._lock:
            run = self.get(run_id)
            revision = decide(run)
            return run if revision is None else self._rewrite(run, revision.changes, revision.events)

    def events(self, run_id: str, *, after: int, limit: int) -> list[Event]:
        with self._lock:
            return [event for event in self._events.get(run_id, ()) if event.seq > after][:limit]

    def show_words(self, run_id: str, words: Mapping[str, Any], *, attempt: int) -> None:
        with self._lock:
            before = self.shown.setdefault(run_id, [])
            if before and before[-1]["attempt"] > attempt:
                raise Fenced(f"Attempt {attempt} of {run_id} is over.")
            before.append({"attempt": attempt, **words})

    def put_reply(self, run_id: str, reply: LastReply, *, attempt: int) -> None:
        with self._lock:
            _refuse_if_over(self.get(run_id), attempt)
            if len(reply.model_dump_json().encode()) > limits.DATABASE_ROW_BYTES:
                raise ValueError("a reply of more than a row can hold")
            self._replies[run_id] = reply

    def last_reply(self, run_id: str) -> LastReply | None:
        with self._lock:
            return self._replies.get(run_id)

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
        with self._lock:
            run = self.get(run_id)
            if key is not None and (known := self._keys.get((run_id, key))):
                refuse_another(known, request)
                return known
            if allowed is not None:
                _refuse_status(run, allowed)
            control = ControlRequest.model_validate({"at": self._clock.now(), **request, "n": run.last_inbox + 1})
            self._controls[run_id].append(control)
            if key is not None:
                self._keys[run_id, key] = control
            told = {"n": control.n, "by": control.by, **control.data}
            news = [NewEvent(type=event, data=told)] if event else []
            self._rewrite(run, {"last_inbox": control.n, **(changes or {})}, news)
            return control

    def controls(self, run_id: str, *, after: int) -> list[ControlRequest]:
        with self._lock:
            return [control for control in self._controls.get(run_id, ()) if control.n > after]

    def inventory(self) -> Inventory:
        with self._lock:
            heads = {run.run_id: RunHead(run.run_id, run.status, run.updated_at) for run in self._runs.values()}
        return Inventory(heads, frozenset(self._secrets.stored), self._slots.everybody())

    def usage_of(self, owner: str, month: str) -> MonthlyUsage:
        with self._lock:
            return self._quotas.usage_of(Scope("user", owner), month)

    def _rewrite(self, run: Run, changes: Mapping[str, Any], events: Sequence[NewEvent]) -> Run:
        changed = Run.model_validate({**dict(run), **changes, "updated_at": self._clock.now()})
        _refuse_too_many(events)
        for scope in run.scopes:
            self._quotas.book(scope, changed.updated_at, usage.difference(run.usage, changed.usage))
            if changed.is_terminal:
                self._slots.give_back(scope, run.run_id)
            if changed.status == "provisioning":
                self._slots.note_dispatch(scope, run.run_id)
        if changed.is_terminal:
            changed = changed.model_copy(update={"resume_token": None})
            self._replies.pop(run.run_id, None)
        self._runs[run.run_id] = changed
        self._write_events(run.run_id, events)
        return self._runs[run.run_id]

    def _write_events(self, run_id: str, events: Sequence[NewEvent]) -> list[Event]:
        run = self._runs[run_id]
        small = [shrink(event, run_id, self._blobs) for event in events]
        numbered = [
            Event(run_id=run_id, seq=seq, ts=self._clock.now(), attempt=run.attempt, type=event.type, data=event.data)
            for seq, event in enumerate(small, start=run.last_seq + 1)
        ]
        self._events[run_id] += numbered
        self._runs[run_id] = run.model_copy(update={"last_seq": run.last_seq + len(numbered)})
        return numbered


class FakeEventLog:
    """The same log as plain dictionaries."""

    def __init__(self, runs: FakeRuns) -> None:
        self._runs = runs

    def run_head(self, run_id: str) -> dict[str, Any]:
        run = self._runs.get(run_id)
        return {name: getattr(run, name) for name in event_log.HEAD}

    def heads(self, owner: str, *, limit: int) -> list[dict[str, Any]]:
        runs = self._runs.list_by_owner(owner, status=None, repo=None, limit=limit, cursor=None).items
        return [{"run_id": run.run_id, "status": run.status, "last_seq": run.last_seq} for run in runs]

    def read(self, run_id: str, *, after: int, limit: int) -> list[dict[str, Any]]:
        events = self._runs.events(run_id, after=after, limit=limit)
        return [{**dict(event), "ts": keys.timestamp(event.ts)} for event in events]


def _refuse_if_over(run: Run, attempt: int | None) -> None:
    if attempt is not None and (run.attempt != attempt or run.is_terminal):
        raise Fenced(f"Attempt {attempt} of {run.run_id} is over.")


def _refuse_status(run: Run, allowed: Iterable[Status]) -> None:
    if run.status not in set(allowed):
        raise Conflict(f"The run is {run.status}, so this can't be done now.")


def _refuse_too_many(events: Sequence[NewEvent]) -> None:
    if len(events) > limits.EVENTS_PER_TRANSACTION:
        message = f"{len(events)} events in one transaction"
        raise ValueError(message)


def _created_key(run: Run) -> str:
    return keys.created_key(run.created_at, run.run_id)
