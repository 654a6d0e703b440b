"""Slots in memory: the same order of those who wait, under one lock."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandpiper.models.quota import Scope
from sandpiper.ports import Held

if TYPE_CHECKING:
    from datetime import datetime


@dataclass
class _Line:
    active: list[str] = field(default_factory=list)
    called: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)  # run id → token, in the order of their start
    since: dict[str, datetime] = field(default_factory=dict)

    def drop(self, run_id: str) -> None:
        self.active = [active for active in self.active if active != run_id]
        self.called.pop(run_id, None)

    def wait(self, run_id: str, since: datetime, token: str) -> int:
        self.since[run_id] = since
        waiting = {**self.waiting, run_id: token}
        self.waiting = {run: waiting[run] for run in sorted(waiting, key=lambda run: (self.since[run], run))}
        return list(self.waiting).index(run_id) + 1


class FakeSlots:
    def __init__(self) -> None:
        self._lines: dict[Scope, _Line] = {}
        self._lock = threading.Lock()

    def active(self, owner: str) -> list[str]:
        """Who has a slot of a user, in the order of their coming."""
        with self._lock:
            return list(self._line(Scope("user", owner)).active)

    def acquire(self, scope: Scope, run_id: str, *, since: datetime, limit: int, token: str) -> int:
        with self._lock:
            line = self._line(scope)
            if run_id in line.active:
                if run_id in line.called:
                    line.called[run_id] = token
                return 0
            if run_id not in line.waiting and not line.waiting and len(line.active) < limit:
                line.active.append(run_id)
                return 0
            return line.wait(run_id, since, token)

    def held(self, scope: Scope) -> Held:
        with self._lock:
            line = self._line(scope)
            return Held(frozenset(line.active), tuple(line.waiting))

    def release(self, scope: Scope, run_id: str | None, *, limit: int) -> list[tuple[str, str]]:
        with self._lock:
            line = self._line(scope)
            if run_id is not None:
                line.drop(run_id)
                line.waiting.pop(run_id, None)
            while line.waiting and len(line.active) < limit:
                called = next(iter(line.waiting))
                line.called[called] = line.waiting.pop(called)
                line.active.append(called)
            return list(line.called.items())

    def everybody(self) -> dict[Scope, frozenset[str]]:
        """All who have a slot or wait for one."""
        with self._lock:
            runs = {scope: frozenset({*line.active, *line.waiting}) for scope, line in self._lines.items()}
        return {scope: found for scope, found in runs.items() if found}

    def give_back(self, scope: Scope, run_id: str) -> None:
        """What ending a run does: the slot is free, and nobody is called up yet."""
        with self._lock:
            self._line(scope).drop(run_id)

    def note_dispatch(self, scope: Scope, run_id: str) -> None:
        """What dispatching a run does: it has been told, so no release names it again."""
        with self._lock:
            self._line(scope).called.pop(run_id, None)

    def _line(self, scope: Scope) -> _Line:
        return self._lines.setdefault(scope, _Line())
