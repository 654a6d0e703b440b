"""Many runs of one user through the steps of the state machine, at once, and everything goes wrong."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper import limits
from sandpiper.adapters.quotas import DynamoQuotas
from sandpiper.adapters.slots import DynamoSlots
from sandpiper.logic.control import Controls
from sandpiper.logic.line import Line
from sandpiper.logic.outcomes import Ending
from sandpiper.logic.quotas import QuotaRules
from sandpiper.logic.start_run import Starter
from sandpiper.logic.workflow_steps import Steps
from sandpiper.models.identity import Identity
from sandpiper.models.quota import Quota, Scope
from sandpiper.models.spec import RunSpec
from sandpiper.testing.fakes import (
    FakeBlobs,
    FakeClock,
    FakeQuotas,
    FakeRuns,
    FakeRunSecrets,
    FakeSandboxes,
    FakeSlots,
)
from tests.contract.worlds import Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandpiper.ports import QuotaBooks
    from tests.contract.worlds import Aws

RUNS = {"fake": 200, "real": 40}  # each is about forty requests to the store
AT_ONCE = 5
IN_ORGANIZATION = 4
SPEC = RunSpec(task="Fix it")


class Machine:
    """What the state machine is to the rules: it waits on tokens and answers whoever asks whether it runs."""

    def __init__(self) -> None:
        self._answers: dict[str, dict[str, Any]] = {}
        self._changed = threading.Condition()

    def start(self, run_id: str, payload: Mapping[str, Any]) -> None: ...

    def succeed(self, token: str, output: Mapping[str, Any]) -> None:
        with self._changed:
            self._answers.setdefault(token, dict(output))
            self._changed.notify_all()

    def wait(self, token: str) -> dict[str, Any]:
        with self._changed:
            assert self._changed.wait_for(lambda: token in self._answers, timeout=100), f"{token} was never woken"
            return self._answers[token]


class Life:
    """Takes one run after the other from its start to its end, which may be any."""

    def __init__(self, store: Store, books: QuotaBooks, owner: str) -> None:
        self.ann = Identity(user=owner, org=f"org of {owner}")
        self.machine: Any = Machine()
        self.runs, self.slots, clock = store.runs, store.slots, store.clock
        quotas = QuotaRules(books, clock, Quota(starts_per_minute=200, starts_per_day=200, concurrency=AT_ONCE))
        books.set_limits(Scope("org", f"org of {owner}"), Quota(concurrency=IN_ORGANIZATION))
        line = Line(self.runs, self.slots, self.machine, quotas)
        secrets, blobs = FakeRunSecrets(), FakeBlobs()
        self.starter = Starter(self.runs, secrets, self.machine, clock, quotas)
        self.controls = Controls(self.runs, self.machine, clock, quotas)
        self.steps = Steps(self.runs, line, blobs, secrets, self.machine, FakeSandboxes(), clock)
        self._watch = threading.Lock()
        self._working = 0
        self.most = 0

    def live(self, fate: str) -> None:
        run = self.starter.start(SPEC, self.ann, {})
        if fate == "cancelled in line":
            self.controls.cancel(run.run_id, self.ann)
        self.steps.acquire_slot(run.run_id, run.run_id)
        cancelled = self.machine.wait(run.run_id)["cancelled"]
        if not cancelled:
            self._work(run.run_id, fate)
        error = {"timed out": "States.Timeout", "crashed": "SandboxLost"}.get(fate)
        for _ in range(2 if fate == "told twice" else 1):
            self.steps.finalize(run.run_id, Ending(error=error, cancelled=cancelled))

    def _work(self, run_id: str, fate: str) -> None:
        self._count(1)
        self.steps.prepare(run_id)
        if fate == "lost once":
            assert self.steps.recover(run_id, "SandboxLost", "gone")
            self.steps.prepare(run_id)
        self._count(-1)

    def _count(self, more: int) -> None:
        with self._watch:
            self._working += more
            self.most = max(self.most, self._working)


@pytest.fixture(params=list(RUNS))
def life(request: pytest.FixtureRequest, owner: str) -> Life:
    clock = FakeClock()
    if request.param == "fake":
        slots, fake_quotas = FakeSlots(), FakeQuotas()
        runs = FakeRuns(clock, slots=slots, quotas=fake_quotas)
        return Life(Store(runs, slots, FakeBlobs(), clock), fake_quotas, owner)
    aws: Aws = request.getfixturevalue("aws")
    table = {"runs_table": aws.runs_table}
    store = Store(aws.runs(clock), DynamoSlots(aws.client("dynamodb"), **table), FakeBlobs(), clock)
    return Life(store, DynamoQuotas(aws.client("dynamodb"), **table), owner)


def test_many_runs_at_once_never_exceed_a_limit_and_leak_no_slot_however_they_end(
    life: Life, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TOLD_IN_LINE", 1)  # being told is a write for each
    number = RUNS[request.node.callspec.params["life"]]
    fates = ["ended", "cancelled in line", "crashed", "timed out", "lost once", "told twice"]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(life.live, [random.choice(fates) for _ in range(number)]))  # noqa: S311 - any order will do
    assert life.most <= IN_ORGANIZATION
    for scope in (Scope("user", life.ann.user), Scope("org", life.ann.org or "")):
        held = life.slots.held(scope)
        assert (held.active, held.waiting) == (frozenset(), ())
    page = life.runs.list_by_owner(life.ann.user, status=None, repo=None, limit=number, cursor=None)
    assert [run.is_terminal for run in page.items] == [True] * number
