"""Faults on the embedded AWS: sandboxes that are killed at a chosen event, and what must be true of the run afterwards.

def test_…(stack, tmp_path):
    script = Script(stack, tmp_path, files, replies)
    calm = script.run()                                       # left alone
    killed = script.run(kill_at("tool_started", nth=2))       # kill -9 as soon as that event is stored
    assert_same(killed, calm, kills=1)
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.e2e.sockets import embedded_runs
from tests.e2e.support import (
    ENDED,
    Person,
    git,
    make_repository,
    of_type,
    open_calls,
    play,
    requests_for,
    sandbox_processes,
    wait_for,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from sandpiper.models.events import Event
    from tests.e2e.conftest import Stack

type Fault = Callable[[Person, str], None]
# A reply that takes this long is worth keeping (limits.REPLY_WORTH_SECONDS), and a kill can come while it is awaited.
THINKING = {"fault": {"delay_seconds": 0.1}}
LEFT_SECONDS = 5.0
ENDS = frozenset({"run_completed", "run_failed", "run_cancelled", "run_timed_out"})
# What a run that has ended keeps in the store: what was asked for, and by attempt what it handed in and its log.
KEPT = re.compile(r"spec\.json|attempts/\d+/(result\.json|diff\.patch|log\.txt)|log/[^/]+\.log\.gz")
PROGRESS = "progress.txt"  # has the time and the task in it


def event_of(
    person: Person, run_id: str, type_: str, *, nth: int = 1, attempt: int | None = None, or_end: bool = False
) -> Event:
    """The nth of its type in the run, or in one attempt of it, once it is stored; read where it is cheap to."""
    runs = embedded_runs(person.stack)
    found: list[Event] = []
    last = 0

    def look() -> Event | None:
        nonlocal last
        for event in runs.events(run_id, after=last, limit=500):
            last = event.seq
            if event.type == type_ and attempt in {None, event.attempt}:
                found.append(event)
            if or_end and event.type in ENDS and len(found) < nth:
                return event
        return found[nth - 1] if len(found) >= nth else None

    return wait_for(look, every=0.03)


def kill_at(type_: str, *, nth: int = 1, attempt: int | None = None, number: int = signal.SIGKILL) -> Fault:
    """A signal to the sandbox of the event's attempt once the event has been stored.

    A kill that came late may have let the attempt before do what this one waits for: then the run just ends.
    """

    def fault(person: Person, run_id: str) -> None:
        event = event_of(person, run_id, type_, nth=nth, attempt=attempt, or_end=True)
        if event.type == type_:
            kill_sandbox(run_id, attempt=event.attempt, number=number)

    return fault


def kill_after(seconds: float, *, attempt: int) -> Fault:
    """At any time of an attempt; one that has ended by then is left alone."""

    def fault(person: Person, run_id: str) -> None:
        runs = embedded_runs(person.stack)

        def is_there() -> bool | None:
            return True if attempt in sandbox_processes(run_id).values() or _has_ended(runs.get(run_id)) else None

        wait_for(is_there)
        time.sleep(seconds)
        kill_sandbox(run_id, attempt=attempt)

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
    tree: dict[str, str]
    stories: int
    commits: int
    pushes: int
    blobs: list[str]
    active: set[str]

    @property
    def outcome(self) -> tuple[str, str, str]:
        return self.run["status"], self.run["result"]["summary"], self.run["result"]["gate"]["status"]

    @property
    def losses(self) -> int:
        return len(of_type(self.events, "run_recovered"))


@dataclass
class Script:
    """One task with its replies, played as often as it is run, each time in a repository of its own."""

    stack: Stack
    root: Path
    files: Mapping[str, str]
    replies: Sequence[dict[str, Any]]
    words: str = "Play the script"
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def run(self, *faults: Fault, **options: Any) -> Played:
        replies = (THINKING | reply for reply in self.replies)
        task = play(self.stack, f"{self.words} {uuid.uuid4().hex}", *replies)
        repository = make_repository(self.root / f"project-{next(self._numbers)}", self.files)
        with Person(self.stack) as person:
            run_id = person.start({"task": task, "repo": str(repository), "branch": "work", **options})
            for fault in faults:
                fault(person, run_id)
            wait_for_end(person, run_id)
            return Played(
                person.run(run_id),
                person.events(run_id),
                requests=len(requests_for(self.stack, task)),
                blobs=left_over(self.stack, run_id),
                active=active_runs(self.stack, person.name),
                **pushed(repository),
            )


def wait_for_end(person: Person, run_id: str) -> None:
    """Of the run, and of its sandboxes."""
    runs = embedded_runs(person.stack)
    wait_for(lambda: _has_ended(runs.get(run_id)), every=0.2)
    wait_for(lambda: None if sandbox_processes(run_id) else True)


def _has_ended(run: Any) -> bool | None:
    return run.status in ENDED or None


def pushed(repository: Path) -> dict[str, Any]:
    """What the branch has; each push to it is a line of its reflog."""
    entries = git("ls-tree", "-r", "work", at=repository, check=False).splitlines()
    tree = {name: kept for kept, _, name in (entry.partition("\t") for entry in entries)}
    return {
        "tree": {name: kept for name, kept in tree.items() if name != PROGRESS},
        "stories": len(git("show", f"work:{PROGRESS}", at=repository, check=False).splitlines()),
        "commits": int(git("rev-list", "--count", "main..work", at=repository, check=False) or 0),
        "pushes": len(git("reflog", "show", "work", at=repository, check=False).splitlines()),
    }


def assert_same(disturbed: Played, calm: Played, *, kills: int) -> None:
    """The invariants of every fault; that events are 1…n is asserted wherever they are read."""
    assert disturbed.run["error"] == calm.run["error"]
    assert disturbed.outcome == calm.outcome
    assert (disturbed.tree, disturbed.stories) == (calm.tree, calm.stories)
    assert (disturbed.commits, disturbed.pushes) == (calm.commits, calm.pushes)
    assert (disturbed.blobs, disturbed.active) == ([], set())
    assert disturbed.requests <= calm.requests + kills
    for once in ("story_updated", "commit_created", "commit_pushed", "run_completed"):
        assert len(of_type(disturbed.events, once)) == len(of_type(calm.events, once)), once
    assert open_calls(disturbed.events) == set()
    attempts = [event["attempt"] for event in disturbed.events]
    assert attempts == sorted(attempts)


def left_over(stack: Stack, run_id: str) -> list[str]:
    """Blobs of a run that has ended which nothing leads to. The end deletes them: it is given a while."""
    deadline = time.monotonic() + LEFT_SECONDS
    while (left := _unnamed_blobs(stack, run_id)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def _unnamed_blobs(stack: Stack, run_id: str) -> list[str]:
    folder = f"runs/{run_id}/"
    listed = stack.aws("s3").list_objects_v2(Bucket=stack.outputs["ArtifactsBucket"], Prefix=folder)
    assert not listed["IsTruncated"]
    keys = [item["Key"] for item in listed.get("Contents", [])]
    return [key for key in keys if not KEPT.fullmatch(key.removeprefix(folder))]


def active_runs(stack: Stack, owner: str) -> set[str]:
    """Who holds a slot of the owner's."""
    row = stack.aws("dynamodb").get_item(
        TableName=stack.outputs["RunsTable"],
        Key={"pk": {"S": f"OWNER#{owner}"}, "sk": {"S": "SLOTS"}},
        ConsistentRead=True,
    )
    return set(row.get("Item", {}).get("active", {}).get("SS", []))
