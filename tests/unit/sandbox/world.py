"""Whole runs of the sandbox on fakes, with a model that says what the test wants."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from sandbox_task.isolation.launch import open_rooms
from sandbox_task.model.port import Hear, Reply, Request, Text, ToolCall, TurnUsage, nobody
from sandbox_task.settings import Backend, Settings
from sandbox_task.stopping import Stop
from sandbox_task.supervisor import Services, Supervisor
from sandpiper.models.run import Budget, Run, RunResult
from sandpiper.testing.fakes import FakeBlobs, FakeClock, FakeRuns, FakeRunSecrets, FakeWorkflow
from tests.unit.sandbox.git_server import TOKEN
from tests.unit.sandbox.recording_sink import logged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from sandpiper.github_ports import HeadWatch, RepositoryTokens
    from sandpiper.models.events import Event
    from sandpiper.models.spec import RunSpec

RUN_ID = "run-01jd0000000000000000000abc"
TASK_TOKEN = "task-token-0123456789"
MODEL_KEY = "model-key-0123456789"

Call = tuple[str, dict[str, Any]]


def plan(*commands: str) -> list[Call]:
    return [("update_plan", {"summary": "Do it.", "steps": ["one"], "validation_commands": list(commands)})]


def run(command: str, **more: Any) -> list[Call]:
    return [("run_command", {"command": command, **more})]


def write(path: str, content: str) -> list[Call]:
    return [("write_file", {"path": path, "content": content})]


def done(summary: str = "Done.") -> list[Call]:
    return [("finish", {"status": "done", "summary": summary})]


class ScriptedModel:
    """One turn after the other; a turn is a list of calls, or words, or something to do first."""

    name = "claude-sonnet-5-5"
    context_tokens = 200_000

    def __init__(self, turns: Sequence[list[Call] | str | Callable[[], list[Call]]]) -> None:
        self.requests: list[Request] = []
        self._turns = iter(turns)

    def complete(self, request: Request, _hear: Hear = nobody) -> Reply:
        self.requests.append(request)
        turn = next(self._turns)
        said = turn() if callable(turn) else turn
        usage = TurnUsage(input_tokens=100, output_tokens=10, cost_usd=0.01)
        if isinstance(said, str):
            return Reply(blocks=(Text(text=said),) if said else (), stop="end", usage=usage)
        number = len(self.requests)
        calls = tuple(
            ToolCall(id=f"call-{number}-{n}", name=name, arguments=arguments)
            for n, (name, arguments) in enumerate(said)
        )
        return Reply(blocks=calls, stop="tool_calls", usage=usage)


@dataclass
class World:
    root: Path
    backend: Backend | None = "bwrap"
    tools: Path | None = None
    clock: FakeClock = field(default_factory=FakeClock)
    blobs: FakeBlobs = field(default_factory=FakeBlobs)
    secrets: FakeRunSecrets = field(default_factory=FakeRunSecrets)
    workflow: FakeWorkflow = field(default_factory=FakeWorkflow)
    stop: Stop = field(default_factory=Stop)
    attempt: int = 1
    approval_wait_seconds: int = 0
    egress_allowed: tuple[str, ...] = ()
    exit_code: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    tokens: RepositoryTokens | None = None
    watch: HeadWatch | None = None

    def __post_init__(self) -> None:
        self.runs = FakeRuns(self.clock, blobs=self.blobs)

    def perform(self, spec: RunSpec, turns: Sequence[Any], *, token: str | None = TOKEN) -> ScriptedModel:
        self.store(spec, token)
        return self.attempt_with(turns)

    def go_on(self, turns: Sequence[Any], *, budget: Budget | None = None) -> ScriptedModel:
        """The next attempt of a run that was suspended, in a sandbox of its own."""
        self.attempt, self.stop = self.attempt + 1, Stop()
        changes = {"status": "provisioning", "attempt": self.attempt, "budget": budget or Budget()}
        self.runs.change(RUN_ID, allowed=("running",), changes=changes)
        self.workflow.wait_on(self.task_token)
        return self.attempt_with(turns)

    def attempt_with(self, turns: Sequence[Any]) -> ScriptedModel:
        model = ScriptedModel(turns)
        rooms = open_rooms(self.root / f"sandbox-{self.attempt}", 10002)
        services = Services(self.runs, self.blobs, self.secrets, self.workflow, self.clock, self.tokens, self.watch)
        supervisor = Supervisor(self._settings(), services, rooms, self.stop, make_models=lambda _name: (model,))
        self.exit_code = supervisor.run()
        return model

    @property
    def task_token(self) -> str:
        return TASK_TOKEN if self.attempt == 1 else f"{TASK_TOKEN}-{self.attempt}"

    @property
    def result(self) -> RunResult:
        return RunResult.model_validate_json(self.blobs.get(self.workflow.answers[self.task_token]["result_key"]))

    @property
    def log(self) -> str:
        return logged(self.blobs, RUN_ID)

    @property
    def diff(self) -> str:
        return self.blobs.get(f"runs/{RUN_ID}/attempts/{self.attempt}/diff.patch").decode()

    @property
    def events(self) -> list[Event]:
        return self.runs.events(RUN_ID, after=0, limit=10_000)

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    def told(self, type_: str) -> list[dict[str, Any]]:
        return [event.data for event in self.events if event.type == type_]

    def everything_that_left(self) -> str:
        events = json.dumps([event.data for event in self.events])
        bodies = (body for key, body in self.blobs.bodies.items() if not key.endswith(".gz"))
        return events + self.log + "".join(body.decode(errors="replace") for body in bodies)

    def store(self, spec: RunSpec, token: str | None = TOKEN) -> None:
        now = self.clock.now()
        row = Run(
            run_id=RUN_ID, owner="user", spec=spec, status="provisioning", attempt=1, created_at=now, updated_at=now
        )
        self.runs.create(row, [])
        self.blobs.put(f"runs/{RUN_ID}/spec.json", spec.model_dump_json().encode(), content_type="application/json")
        if token:
            self.secrets.put(RUN_ID, {"github_token": token})
        self.workflow.wait_on(TASK_TOKEN)

    def _settings(self) -> Settings:
        return Settings(
            run_id=RUN_ID,
            attempt=self.attempt,
            task_token=SecretStr(self.task_token),
            anthropic_api_key=SecretStr(MODEL_KEY),
            runs_table="runs",
            events_table="events",
            artifacts_bucket="bucket",
            run_secrets_key_id="key",
            sandpiper_sandbox=self.backend,
            sandbox_tools_dir=self.tools,
            approval_wait_seconds=self.approval_wait_seconds,
            egress_allowed=self.egress_allowed,
            **self.settings,
        )
