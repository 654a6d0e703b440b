"""Faults on the embedded AWS: sandboxes that are killed at a chosen event, and what must be true of the run afterwards.

def test_…(stack, tmp_path):
    script = Script(stack, tmp_path, replies)
    calm = script.run()                                       # left alone
    killed = script.run(kill_at("tool_started", nth=2))       # kill -9 as soon as that event is stored
    assert_same(killed, calm, kills=1)
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.e2e.support import Person, git, make_repository, new_task, of_type, requests_for, sandbox_processes, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tests.e2e.conftest import Stack

type Fault = Callable[[Person, str], None]
# A reply that takes this long is worth keeping (limits.REPLY_WORTH_SECONDS), and a kill can come while it is awaited.
THINKING = {"fault": {"delay_seconds": 0.1}}


def kill_at(type_: str, *, nth: int = 1, number: int = signal.SIGKILL) -> Fault:
    """A signal to the sandbox of the run's current attempt once the event has been stored for the nth time."""

    def fault(person: Person, run_id: str) -> None:
        def attempt() -> int | None:
            found = [event["attempt"] for event in person.events(run_id) if event["type"] == type_]
            return found[nth - 1] if len(found) >= nth else None

        kill_sandbox(run_id, attempt=wait_for(attempt, every=0.01), number=number)

    return fault


def kill_sandbox(run_id: str, *, attempt: int, number: int = signal.SIGKILL) -> None:
    """All of it for SIGKILL, its first process for every other signal."""
    own = sorted(pid for pid, of in sandbox_processes(run_id).items() if of == attempt)
    for pid in own if number == signal.SIGKILL else own[:1]:
        with contextlib.suppress(ProcessLookupError):  # the container takes its main process along
            os.kill(pid, number)


@dataclass(frozen=True)
class Played:
    """What is left of a run, for comparison."""

    run: dict[str, Any]
    events: list[dict[str, Any]]
    requests: int
    tree: str
    commits: int
    blobs: list[str]
    active: set[str]

    @property
    def outcome(self) -> tuple[str, str, str]:
        return self.run["status"], self.run["result"]["summary"], self.run["result"]["gate"]["status"]


@dataclass
class Script:
    """One task with its replies, played as often as it is run, each time in a repository of its own."""

    stack: Stack
    root: Path
    files: Mapping[str, str]
    replies: Sequence[dict[str, Any]]
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def run(self, *faults: Fault, **options: Any) -> Played:
        task = new_task(self.stack, *(reply | THINKING for reply in self.replies))
        repository = make_repository(self.root / f"project-{next(self._numbers)}", self.files)
        with Person(self.stack) as person:
            run_id = person.start({"task": task, "repo": str(repository), "branch": "work", **options})
            for fault in faults:
                fault(person, run_id)
            run = person.end_of(run_id)
            wait_for(lambda: None if sandbox_processes(run_id) else True)
            return Played(
                run,
                person.events(run_id),
                requests=len(requests_for(self.stack, task)),
                tree=git("rev-parse", "work^{tree}", at=repository, check=False),
                commits=int(git("rev-list", "--count", "main..work", at=repository, check=False) or 0),
                blobs=wait_for_no_checkpoints(self.stack, run_id),
                active=active_runs(self.stack, person.name),
            )


def assert_same(disturbed: Played, calm: Played, *, kills: int) -> None:
    """The invariants of every fault; that events are 1…n is asserted wherever they are read."""
    assert disturbed.outcome == calm.outcome
    assert disturbed.tree == calm.tree
    assert (disturbed.commits, disturbed.blobs, disturbed.active) == (calm.commits, [], set())
    assert disturbed.requests <= calm.requests + kills
    for once in ("commit_created", "commit_pushed", "run_completed"):
        assert len(of_type(disturbed.events, once)) == len(of_type(calm.events, once)), once
    attempts = [event["attempt"] for event in disturbed.events]
    assert attempts == sorted(attempts)


def wait_for_no_checkpoints(stack: Stack, run_id: str) -> list[str]:
    """The end deletes them; what is still there after a while is left over."""
    look = lambda: None if checkpoint_blobs(stack, run_id) else True  # noqa: E731
    with contextlib.suppress(BaseException):
        wait_for(look, seconds=5)
    return checkpoint_blobs(stack, run_id)


def checkpoint_blobs(stack: Stack, run_id: str) -> list[str]:
    bucket = stack.outputs["ArtifactsBucket"]
    listed = stack.aws("s3").list_objects_v2(Bucket=bucket, Prefix=f"runs/{run_id}/checkpoint")
    return [item["Key"] for item in listed.get("Contents", [])]


def active_runs(stack: Stack, owner: str) -> set[str]:
    """Who holds a slot of the owner's."""
    row = stack.aws("dynamodb").get_item(
        TableName=stack.outputs["RunsTable"],
        Key={"pk": {"S": f"OWNER#{owner}"}, "sk": {"S": "SLOTS"}},
        ConsistentRead=True,
    )
    return set(row.get("Item", {}).get("active", {}).get("SS", []))
