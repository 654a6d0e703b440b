"""Any story of runs, users and faults keeps the promises: hypothesis tells the story, the fakes play it.

The machine below is what Step Functions and sandboxes are to the rules: executions that wait on tokens, attempts that
begin, are lost, suspend or hand something in. After every step the invariants are checked, and at the end everything is
ended, after which nothing may be left and `reconcile` has nothing to do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sandpiper.errors import Fenced
from sandpiper.logic import statuses
from sandpiper.logic.outcomes import Ending
from sandpiper.logic.reconcile import Mended
from sandpiper.models.events import NewEvent
from sandpiper.models.identity import Identity
from sandpiper.models.quota import Quota, Scope
from sandpiper.models.run import Run, RunResult
from tests.unit.logic.world import World

if TYPE_CHECKING:
    from datetime import datetime

    from sandpiper.models.run import Status

USERS = ("ann", "bob")
LETTERS = {
    "run_queued": "q",
    "run_slot_waiting": "w",
    "run_dispatched": "d",
    "run_recovered": "l",
    "run_suspended": "s",
    "run_resumed": "r",
    **dict.fromkeys(statuses.EVENT_OF_END.values(), "e"),
}
# Each sandbox is dispatched after a wait or none, and lost or suspended before the next one is; the end is the end.
LIFE = re.compile(r"q(?:w*d(?:l|sr))*w*(?:d(?:l|s|sr)?)?e?")
PAUSED = RunResult(outcome="suspended", suspend_reason="paused")
DONE = RunResult(outcome="completed")


class Runs(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.tokens: dict[str, str] = {}  # what each execution waits on in line
        self.waiting: dict[Scope, tuple[str, ...]] = {}  # as it was before the last step
        self.seen: dict[str, Run] = {}
        self.count = 0

    @initialize(user=st.integers(1, 2), org=st.none() | st.integers(1, 2), eager=st.booleans())
    def choose_limits(self, user: int, org: int | None, *, eager: bool) -> None:
        self.eager = eager
        self.limits = {Scope("org", "acme"): org, **{Scope("user", name): user for name in USERS}}
        for scope, limit in self.limits.items():
            self.world.quotas.set_limits(scope, Quota(concurrency=limit))

    # ---- what people do

    @precondition(lambda self: len(self._all()) < 5)
    @rule(user=st.sampled_from(USERS))
    def start(self, user: str) -> None:
        run_id = self.world.start(Identity(user=user, org="acme"))
        if self.eager:
            self._join(run_id)

    @precondition(lambda self: self._live())
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(self._live()))
        self.world.controls.cancel(run, self._who(run))

    @precondition(lambda self: self._live("suspended"))
    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(self._live("suspended")))
        self.world.controls.resume(run, self._who(run))

    # ---- what the state machine does, and does again

    @precondition(lambda self: self._outside())
    @rule(data=st.data())
    def acquire_slot(self, data: st.DataObject) -> None:
        """At the start, after a suspension that is over, and once more with a new token if an answer was lost."""
        self._join(data.draw(st.sampled_from(self._outside())))

    @precondition(lambda self: self._called())
    @rule(data=st.data())
    def prepare(self, data: st.DataObject) -> None:
        self.world.steps.prepare(data.draw(st.sampled_from(self._called())))

    @precondition(lambda self: self._live("running"))
    @rule(data=st.data())
    def suspend(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(self._live("running")))
        self.world.suspend(run, PAUSED)
        self.tokens.pop(run, None)

    @precondition(lambda self: self._live("provisioning", "running"))
    @rule(data=st.data())
    def lose_the_sandbox(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(self._live("provisioning", "running")))
        if not self.world.steps.recover(run, "Lost", ""):
            self._finalize(run, Ending(error="Lost"))

    @precondition(lambda self: self._at_its_end())
    @rule(data=st.data(), error=st.sampled_from([None, "States.Timeout", "SandboxLost"]))
    def finalize(self, data: st.DataObject, error: str | None) -> None:
        run = data.draw(st.sampled_from(self._at_its_end()))
        if error is None and self.world.status(run) == "running":
            self.world.hand_in(run, DONE)
        self._finalize(run, Ending(error=error))

    # ---- what sandboxes do

    @precondition(lambda self: self._live("provisioning"))
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.world.begin(data.draw(st.sampled_from(self._live("provisioning"))))

    @precondition(lambda self: self._all())
    @rule(data=st.data(), attempt=st.integers(1, 3), number=st.integers(1, 3))
    def report(self, data: st.DataObject, attempt: int, number: int) -> None:
        before = data.draw(st.sampled_from(self._all()))
        try:
            self.world.runs.append(before.run_id, [NewEvent(type="tool_output")] * number, attempt=attempt)
        except Fenced:
            assert before.attempt != attempt or before.is_terminal
            assert self.world.get(before.run_id) == before
        else:
            assert self.world.get(before.run_id).last_seq == before.last_seq + number

    # ---- faults

    @precondition(lambda self: self._live())
    @rule(data=st.data())
    def execution_dies(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(self._live()))
        self.world.reconciler.execution_ended(run, "ABORTED", "")
        self._ended(run)

    @rule()
    def time_passes(self) -> None:
        """The sweep comes by while everything is under way: it finds nothing."""
        self.world.clock.advance(3600)
        assert self.world.reconciler.sweep() == Mended()

    # ---- what is always true

    @invariant()
    def statuses_follow_each_other_as_they_may(self) -> None:
        for now in self._all():
            before = self.seen.get(now.run_id)
            if before is not None and now.status != before.status:
                assert now.status in _reachable(before.status), (before.status, now.status)
            assert before is None or not before.is_terminal or now == before
            self.seen[now.run_id] = now

    @invariant()
    def events_are_numbered_without_gap_and_tell_a_life(self) -> None:
        for run in self._all():
            events = self.world.runs.events(run.run_id, after=0, limit=10_000)
            assert [event.seq for event in events] == list(range(1, run.last_seq + 1))
            told = "".join(LETTERS.get(event.type, "") for event in events)
            assert LIFE.fullmatch(told), told

    @invariant()
    def nobody_works_without_a_slot_and_no_more_than_may(self) -> None:
        working = [run for run in self._all() if run.status in {"provisioning", "running"}]
        for scope, limit in getattr(self, "limits", {}).items():
            held = self.world.slots.held(scope).active
            assert limit is None or len(held) <= limit
            if limit is not None:
                assert {run.run_id for run in working if scope in run.scopes} <= held

    @invariant()
    def nobody_waits_for_a_slot_that_is_free_or_keeps_one_for_nothing(self) -> None:
        for scope, limit in getattr(self, "limits", {}).items():
            held = self.world.slots.held(scope)
            assert not held.waiting or len(held.active) == limit
            assert not {self.world.status(run) for run in held.active} & {"suspended", *statuses.EVENT_OF_END}

    @invariant()
    def whoever_has_all_slots_has_been_told(self) -> None:
        for run_id, token in self.tokens.items():
            limited = [scope for scope in self.world.get(run_id).scopes if self.limits[scope] is not None]
            waits = any(run_id not in self.world.slots.held(scope).active for scope in limited)
            assert waits or token in self.world.workflow.answers

    @invariant()
    def places_in_line_are_theirs(self) -> None:
        for run in self._all():
            if run.queue_position is not None:
                assert run.status == "queued"
                assert run.estimated_wait_seconds is not None
        for scope in getattr(self, "limits", {}):
            waiting = self.world.slots.held(scope).waiting
            places = [(self.world.get(run).queue_line, self.world.get(run).queue_position) for run in waiting]
            assert places == [(scope.kind, place) for place in range(1, len(waiting) + 1)]

    @invariant()
    def who_was_started_first_is_served_first(self) -> None:
        for scope in getattr(self, "limits", {}):
            held, before = self.world.slots.held(scope), self.waiting.get(scope, ())
            assert list(held.waiting) == sorted(held.waiting, key=self._start_of)
            served = [run for run in before if run in held.active]
            passed_over = [run for run in before if run in held.waiting]
            assert not served or not passed_over or self._start_of(served[-1]) < self._start_of(passed_over[0])
            self.waiting[scope] = held.waiting

    def teardown(self) -> None:
        for run in self._all():
            self.world.reconciler.execution_ended(run.run_id, "ABORTED", "")
            self._ended(run.run_id)
        for scope in getattr(self, "limits", {}):
            held = self.world.slots.held(scope)
            assert (held.active, held.waiting) == (frozenset(), ())
        self.world.clock.advance(3600)
        assert self.world.reconciler.sweep() == Mended()

    # ---- helpers

    def _join(self, run: str) -> None:
        self.count += 1
        self.tokens[run] = self.world.token(f"slot-{self.count}")
        self.world.steps.acquire_slot(run, self.tokens[run])

    def _live(self, *among: str) -> list[str]:
        return [run.run_id for run in self._all() if run.status in (among or statuses.LIVE)]

    def _outside(self) -> list[str]:
        """Those whose execution comes to the line, or asks there once more."""
        woken = [run for run in self._live("suspended") if self._is_woken(self.world.get(run).resume_token)]
        return [
            *woken,
            *(run for run in self._live("queued") if self.tokens.get(run) not in self.world.workflow.answers),
        ]

    def _called(self) -> list[str]:
        return [run for run in self._live("queued") if self._is_woken(self.tokens.get(run))]

    def _at_its_end(self) -> list[str]:
        cancelled = [run for run in self._live("queued") if self._is_woken(self.tokens.get(run), cancelled=True)]
        return [*cancelled, *self._live("provisioning", "running")]

    def _all(self) -> list[Run]:
        return [self.world.get(run_id) for run_id in self.world.runs.inventory().runs]

    def _finalize(self, run: str, ending: Ending) -> None:
        self.world.steps.finalize(run, ending)
        self._ended(run)

    def _ended(self, run: str) -> None:
        self.world.workflow.finish(run)
        self.tokens.pop(run, None)

    def _start_of(self, run: str) -> tuple[datetime, str]:
        return self.world.get(run).created_at, run

    def _is_woken(self, token: str | None, *, cancelled: bool = False) -> bool:
        return token is not None and self.world.workflow.answers.get(token) == {"cancelled": cancelled}

    def _who(self, run: str) -> Identity:
        return Identity(user=self.world.get(run).owner)


def _reachable(status: Status) -> set[Status]:
    """One step of a story may be several changes: suspended and resumed at once, recovered and dispatched."""
    found: set[Status] = set()
    ahead = {status}
    while ahead:
        found |= ahead
        ahead = {after for before in ahead for after in statuses.NEXT[before]} - found
    return found - {status}


TestRuns = Runs.TestCase
TestRuns.settings = settings(max_examples=80, stateful_step_count=50, deadline=None, derandomize=True)
