"""The state machine and the containers, in memory. They take no token, payload or override that AWS would refuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from sandpiper import limits
from sandpiper.errors import Fenced, NotFound
from sandpiper.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sandpiper.ports import Clock

ExecutionStatus = Literal["RUNNING", "SUCCEEDED", "ABORTED"]


class FakeWorkflow:
    """Tests say which tokens somebody waits on (`wait_on`) and read what was answered (`answers`, `failures`)."""

    def __init__(self) -> None:
        self.clock: Clock = FakeClock()
        self.started: dict[str, dict[str, Any]] = {}
        self.started_at: dict[str, datetime] = {}
        self.statuses: dict[str, ExecutionStatus] = {}
        self.answers: dict[str, dict[str, Any]] = {}
        self.failures: dict[str, tuple[str, str]] = {}
        self.heartbeats: list[str] = []
        self.stopped: dict[str, str] = {}
        self._waiting: set[str] = set()

    def wait_on(self, token: str) -> None:
        self._waiting.add(token)

    def expire(self, token: str) -> None:
        self._waiting.discard(token)

    def finish(self, run_id: str) -> None:
        self.statuses[run_id] = "SUCCEEDED"

    def start(self, run_id: str, payload: Mapping[str, Any]) -> None:
        _check_size(payload)
        if run_id not in self.started:
            self.started[run_id] = dict(payload)
            self.started_at[run_id] = self.clock.now()
            self.statuses[run_id] = "RUNNING"

    def succeed(self, token: str, output: Mapping[str, Any]) -> None:
        _check_size(output)
        self._use(token)
        self.answers[token] = dict(output)

    def fail(self, token: str, error: str, cause: str) -> None:
        self._use(token)
        self.failures[token] = (error[: limits.MAX_ERROR_CHARS], cause[: limits.MAX_CAUSE_CHARS])

    def heartbeat(self, token: str) -> None:
        self._refuse_unknown(token)
        self.heartbeats.append(token)

    def stop(self, run_id: str, cause: str) -> None:
        if run_id not in self.statuses:
            raise NotFound(f"There is no execution of {run_id}.")
        if self.statuses[run_id] == "RUNNING":
            self.statuses[run_id] = "ABORTED"
            self.stopped[run_id] = cause

    def is_running(self, run_id: str) -> bool:
        return self.statuses.get(run_id) == "RUNNING"

    def running(self) -> dict[str, datetime]:
        return {name: at for name, at in self.started_at.items() if self.is_running(name)}

    def _use(self, token: str) -> None:
        self._refuse_unknown(token)
        self._waiting.discard(token)

    def _refuse_unknown(self, token: str) -> None:
        if token not in self._waiting:
            raise Fenced("Nobody waits for this answer any more.")


class FakeSandboxes:
    def __init__(self) -> None:
        self.running: dict[str, list[dict[str, str]]] = {}
        self.stopped: list[tuple[str, str]] = []

    def launch(self, run_id: str, environment: Mapping[str, str]) -> None:
        """What the state machine does, with the limit that ECS sets on overrides."""
        overrides = json.dumps([{"name": name, "value": value} for name, value in environment.items()])
        if len(overrides) > limits.ECS_OVERRIDES_CHARS:
            message = f"{len(overrides)} characters of overrides; {limits.ECS_OVERRIDES_CHARS} is the most"
            raise ValueError(message)
        self.running.setdefault(run_id, []).append(dict(environment))

    def stop_all(self, run_id: str, reason: str) -> int:
        tasks = self.running.pop(run_id, [])
        self.stopped += [(run_id, reason) for _ in tasks]
        return len(tasks)


def _check_size(payload: Mapping[str, Any]) -> None:
    size = len(json.dumps(dict(payload)).encode())
    if size > limits.MAX_STATE_BYTES:
        message = f"{size} bytes between states; {limits.MAX_STATE_BYTES} is the most"
        raise ValueError(message)
