"""People and the Suspend step at the same time, in any order: no wish is lost, and no run goes on for nothing.

The world is the fakes. What people write is written at once, but their call that wakes the run may be late; the step
lets them in between any two of its own calls. The model knows only what was asked for and what the sandbox had seen.
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sandpiper.errors import Conflict, Fenced
from sandpiper.logic import budgets
from sandpiper.logic.outcomes import Ending
from sandpiper.models.run import Budget, RunResult, SuspendReason, Usage
from sandpiper.models.spec import RunSpec
from tests.unit.logic.world import ANN, World

if TYPE_CHECKING:
    from collections.abc import Mapping

Action = Literal["continue", "raise", "say", "resume", "cancel"]
ACTIONS = st.sampled_from(["continue", "raise", "say", "resume", "cancel"])
REASONS = st.sampled_from(["budget_exhausted", "awaiting_input", "paused"])
# Between which calls of the step people come in: before its first, after it has read, after it has written.
INTERLUDES = st.lists(st.tuples(st.sampled_from(["first", "read", "written"]), ACTIONS), max_size=3)


class LateCalls:
    """A workflow whose answers are sent when the machine says so."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.held: list[tuple[str, dict[str, Any]]] = []

    def succeed(self, token: str, output: Mapping[str, Any]) -> None:
        self.held.append((token, dict(output)))

    def send(self) -> None:
        while self.held:
            with contextlib.suppress(Fenced):
                self._world.workflow.succeed(*self.held.pop(0))


class People(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.late = LateCalls(self.world)
        self.people = replace(self.world.controls, workflow=self.late)  # type: ignore[arg-type]  # the part that is used
        self.run_id = self.world.running(spec=RunSpec(task="Fix it", max_turns=3))
        self.numbers = itertools.count()
        self.said = self.said_when_looked = 0
        self.resumed = False
        self.token: str | None = None
        self.look()

    def is_live(self) -> bool:
        return not self.world.get(self.run_id).is_terminal

    def is_working(self) -> bool:
        return self.token is None and self.is_live()

    @precondition(is_working)
    @rule()
    def look(self) -> None:
        """The sandbox reads the row and the inbox."""
        run = self.world.get(self.run_id)
        self.known = budgets.in_force(run.spec, run.budget)
        self.seen, self.said_when_looked = run.last_inbox, self.said

    @precondition(is_live)
    @rule(action=ACTIONS)
    def ask(self, action: Action) -> None:
        with contextlib.suppress(Conflict):
            self._ask(action)

    def _ask(self, action: Action) -> None:
        run = self.world.get(self.run_id)
        match action:
            case "continue":
                self.people.grant(self.run_id, Budget(), ANN)
            case "raise":
                now = budgets.in_force(run.spec, run.budget).max_turns or 0
                self.people.grant(self.run_id, Budget(max_turns=now + 5), ANN)
            case "say":
                self.people.say(self.run_id, "Hello", ANN)
                self.said += 1
            case "resume":
                asked = self.people.resume(self.run_id, ANN)
                self.resumed = self.resumed or asked.status == "suspended"
            case "cancel":
                self.people.cancel(self.run_id, ANN)

    @rule()
    def calls_arrive(self) -> None:
        self.late.send()

    @precondition(is_working)
    @rule(reason=REASONS, interludes=INTERLUDES)
    def suspend(self, reason: SuspendReason, interludes: list[tuple[str, Action]]) -> None:
        spent = Usage(turns=self.known.max_turns or 0) if reason == "budget_exhausted" else Usage()
        self.result = RunResult(
            outcome="suspended",
            suspend_reason=reason,
            exhausted="max_turns" if reason == "budget_exhausted" else None,
            limits=self.known,
            inbox_seen=self.seen,
            usage=spent,
        )
        self.resumed = False
        self._step(interludes)

    @precondition(lambda self: self.token is not None and self.token not in self.world.workflow.answers)
    @rule(interludes=INTERLUDES)
    def suspend_again(self, interludes: list[tuple[str, Action]]) -> None:
        """Step Functions repeats the step, with a new token."""
        self.world.workflow.expire(self.token or "")
        self._step(interludes)

    def _step(self, interludes: list[tuple[str, Action]]) -> None:
        self.token = self.world.token(f"token-{next(self.numbers)}")
        key = self.world.hand_in(self.run_id, self.result)
        self._come_in(interludes, "first")
        with self._between(interludes):
            self.world.steps.suspend(self.run_id, self.token, key)

    @contextlib.contextmanager
    def _between(self, interludes: list[tuple[str, Action]]) -> Any:
        blobs, sandboxes = self.world.blobs, self.world.sandboxes
        get, stop_all = blobs.get, sandboxes.stop_all

        def get_while_people_come(key: str) -> bytes:
            self._come_in(interludes, "read")
            return get(key)

        def stop_while_people_come(run_id: str, reason: str) -> int:
            self._come_in(interludes, "written")
            return stop_all(run_id, reason)

        blobs.get, sandboxes.stop_all = get_while_people_come, stop_while_people_come  # type: ignore[method-assign]
        yield
        blobs.get, sandboxes.stop_all = get, stop_all  # type: ignore[method-assign]

    def _come_in(self, interludes: list[tuple[str, Action]], point: str) -> None:
        for when, action in interludes:
            if when == point:
                self.ask(action)

    @precondition(lambda self: self.token in self.world.workflow.answers)
    @rule(looks=st.booleans())
    def execution_goes_on(self, *, looks: bool) -> None:
        """What the state machine does with the answer, and a new sandbox that may stop before it has looked."""
        answer = self.world.workflow.answers[self.token or ""]
        self.token = None
        if answer["cancelled"] or self.world.get(self.run_id).cancel_requested:
            self.world.steps.finalize(self.run_id, Ending(cancelled=True))
            return
        self.world.acquire(self.run_id)
        self.world.steps.prepare(self.run_id)
        self.world.begin(self.run_id)
        if looks:
            self.look()

    def _has_its_answer(self) -> bool:
        run = self.world.get(self.run_id)
        match self.result.suspend_reason:
            case "budget_exhausted":
                return (budgets.in_force(run.spec, run.budget).max_turns or 0) > (self.known.max_turns or 0)
            case "awaiting_input":
                return self.said > self.said_when_looked
        return self.resumed

    @invariant()
    def no_wish_is_lost_and_nothing_goes_on_by_itself(self) -> None:
        if getattr(self, "token", None) is None or self.late.held:
            return
        is_woken = self.token in self.world.workflow.answers
        assert is_woken == (self._has_its_answer() or self.world.get(self.run_id).cancel_requested)

    @invariant()
    def the_log_has_no_gap(self) -> None:
        if hasattr(self, "world"):
            seqs = [event.seq for event in self.world.runs.events(self.run_id, after=0, limit=10_000)]
            assert seqs == list(range(1, len(seqs) + 1))


TestPeople = People.TestCase
TestPeople.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
