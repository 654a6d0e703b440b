"""The rules on fakes, as the functions wire them on AWS."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from sandpiper.logic.control import Controls
from sandpiper.logic.line import Line
from sandpiper.logic.quotas import QuotaRules
from sandpiper.logic.reconcile import Reconciler
from sandpiper.logic.socket_control import perform
from sandpiper.logic.start_run import Starter
from sandpiper.logic.subscriptions import Subscriptions
from sandpiper.logic.workflow_steps import Steps
from sandpiper.models.identity import Identity
from sandpiper.models.quota import Quota
from sandpiper.models.spec import RunSpec
from sandpiper.testing.fakes import (
    FakeBlobs,
    FakeClock,
    FakeConnections,
    FakeEventLog,
    FakeQuotas,
    FakeRuns,
    FakeRunSecrets,
    FakeSandboxes,
    FakeSlots,
    FakeSockets,
    FakeWorkflow,
)

if TYPE_CHECKING:
    from sandpiper.models.run import Run, RunResult, Status

ANN = Identity(user="ann", org="acme")
BOB = Identity(user="bob", org="acme")
SPEC = RunSpec(task="Add a logout button", repo="owner/repo", repo_url="https://github.com/owner/repo.git")
QUOTA = Quota(concurrency=1)  # of a user; tests that are about another one set it


@dataclass
class World:
    clock: FakeClock = field(default_factory=FakeClock)
    slots: FakeSlots = field(default_factory=FakeSlots)
    quotas: FakeQuotas = field(default_factory=FakeQuotas)
    blobs: FakeBlobs = field(default_factory=FakeBlobs)
    secrets: FakeRunSecrets = field(default_factory=FakeRunSecrets)
    workflow: FakeWorkflow = field(default_factory=FakeWorkflow)
    sandboxes: FakeSandboxes = field(default_factory=FakeSandboxes)
    connections: FakeConnections = field(default_factory=FakeConnections)
    sockets: FakeSockets = field(default_factory=FakeSockets)

    def __post_init__(self) -> None:
        self.workflow.clock = self.clock
        self.runs = FakeRuns(self.clock, blobs=self.blobs, slots=self.slots, quotas=self.quotas, secrets=self.secrets)
        self.rules = QuotaRules(self.quotas, self.clock, QUOTA)
        self.line = Line(self.runs, self.slots, self.workflow, self.rules)
        self.starter = Starter(self.runs, self.secrets, self.workflow, self.clock, self.rules)
        self.controls = Controls(self.runs, self.workflow, self.clock, self.rules)
        self.subscriptions = Subscriptions(
            self.connections, FakeEventLog(self.runs), self.sockets, self.clock, partial(perform, self.controls)
        )
        self.steps = Steps(
            runs=self.runs,
            line=self.line,
            blobs=self.blobs,
            secrets=self.secrets,
            workflow=self.workflow,
            sandboxes=self.sandboxes,
            clock=self.clock,
        )
        self.reconciler = Reconciler(self.steps)

    def start(self, identity: Identity = ANN, spec: RunSpec = SPEC) -> str:
        self.clock.advance(1)
        return self.starter.start(spec, identity, {}).run_id

    def acquire(self, run_id: str) -> str:
        """What the AcquireSlot state does; returns its token."""
        token = self.token(f"slot-{run_id}")
        self.steps.acquire_slot(run_id, token)
        return token

    def dispatched(self, identity: Identity = ANN, spec: RunSpec = SPEC) -> str:
        """A run with a slot whose sandbox is being started."""
        run_id = self.start(identity, spec)
        self.acquire(run_id)
        self.steps.prepare(run_id)
        return run_id

    def running(self, identity: Identity = ANN, spec: RunSpec = SPEC) -> str:
        run_id = self.dispatched(identity, spec)
        self.begin(run_id)
        return run_id

    def begin(self, run_id: str) -> None:
        """What a sandbox does first."""
        attempt = self.get(run_id).attempt
        self.runs.change(run_id, allowed=("provisioning",), changes={"status": "running"}, attempt=attempt)
        self.sandboxes.launch(run_id, {"RUN_ID": run_id})

    def suspended(self, result: RunResult, spec: RunSpec = SPEC) -> tuple[str, str]:
        """A run that its sandbox has suspended, and the token that it waits on."""
        run_id = self.running(spec=spec)
        return run_id, self.suspend(run_id, result)

    def suspend(self, run_id: str, result: RunResult) -> str:
        """What the sandbox and then the Suspend state do; returns the token of the latter."""
        token = self.token(f"suspend-{run_id}-{self.get(run_id).attempt}")
        self.steps.suspend(run_id, token, self.hand_in(run_id, result))
        return token

    def token(self, name: str) -> str:
        self.workflow.wait_on(name)
        return name

    def hand_in(self, run_id: str, result: RunResult) -> str:
        """What a sandbox does before it answers; returns the key of the result."""
        key = f"runs/{run_id}/attempts/{self.runs.get(run_id).attempt}/result.json"
        self.blobs.put(key, result.model_dump_json().encode(), content_type="application/json")
        return key

    def status(self, run_id: str) -> Status:
        return self.runs.get(run_id).status

    def event_types(self, run_id: str) -> list[str]:
        return [event.type for event in self.runs.events(run_id, after=0, limit=1000)]

    def last_event(self, run_id: str) -> tuple[str, dict[str, Any]]:
        event = self.runs.events(run_id, after=0, limit=1000)[-1]
        return event.type, event.data

    def frames(self, connection_id: str) -> list[dict[str, Any]]:
        return [json.loads(frame) for frame in self.sockets.frames[connection_id]]

    def connect(self, connection_id: str, identity: Identity = ANN) -> None:
        self.sockets.connect(connection_id)
        self.connections.open(connection_id, {"user": identity.user, "org": identity.org}, expires_at=2**40)

    def get(self, run_id: str) -> Run:
        return self.runs.get(run_id)
