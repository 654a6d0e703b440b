"""What the end-to-end tests share: a person at the public door, repositories, and scripts for the model."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.e2e.conftest import Stack

ENDED = frozenset({"completed", "failed", "cancelled", "timed_out"})
WAIT_SECONDS = 120.0


def wait_for[T](look: Callable[[], T | None], *, seconds: float = WAIT_SECONDS, every: float = 0.1) -> T:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (found := look()) is not None:
            return found
        time.sleep(every)
    pytest.fail(f"nothing within {seconds} s")


# ---- people


@dataclass
class Person:
    """One user of the API. Names are unique, so that no test sees the runs of another or waits in its line."""

    stack: Stack
    name: str = field(default_factory=lambda: f"user-{uuid.uuid4().hex[:12]}")

    def __post_init__(self) -> None:
        self.http = self.stack.client(self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.http.close()

    def execute(self, body: Any, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post("/execute", json=body, headers=named)

    def start(self, body: Any, **headers: str) -> str:
        answer = self.execute(body, **headers)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["run_id"])

    def run(self, run_id: str) -> dict[str, Any]:
        answer = self.http.get(f"/runs/{run_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["run"])

    def end_of(self, run_id: str) -> dict[str, Any]:
        """The run when it has ended, however it did."""
        return wait_for(lambda: run if (run := self.run(run_id))["status"] in ENDED else None)

    def suspended(self, run_id: str) -> dict[str, Any]:
        """The run when it waits for somebody."""
        return wait_for(lambda: run if (run := self.run(run_id))["status"] == "suspended" else None)

    def finish(self, body: Any, **headers: str) -> dict[str, Any]:
        return self.end_of(self.start(body, **headers))

    def events(self, run_id: str, *, page: int = 200) -> list[dict[str, Any]]:
        """The whole log, page by page; its numbers are 1, 2, 3, … or the test fails."""
        events = [event for events in self._pages(run_id, page) for event in events]
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        return events

    def event(self, run_id: str, type_: str) -> dict[str, Any]:
        """Waits for the first event of a type."""
        return wait_for(lambda: next((e for e in self.events(run_id) if e["type"] == type_), None))

    def download(self, run_id: str, what: str) -> httpx.Response:
        """By the presigned URL, without a token of ours."""
        answer = self.http.get(f"/runs/{run_id}/{what}")
        assert answer.status_code == 200, answer.text
        return httpx.get(answer.json()["url"], timeout=40)

    def cancel(self, run_id: str) -> httpx.Response:
        return self.http.post(f"/runs/{run_id}/cancel")

    def _pages(self, run_id: str, page: int) -> Iterator[list[dict[str, Any]]]:
        after = 0
        while True:
            answer = self.http.get(f"/runs/{run_id}/events", params={"after": after, "limit": page})
            assert answer.status_code == 200, answer.text
            if not (events := answer.json()["events"]):
                return
            yield events
            after = events[-1]["seq"]


@dataclass
class Case:
    """A run that was started, in a repository and by a person of its own: what came of it is asked for later.

    Modules start theirs all at once, because runs go on side by side.
    """

    person: Person
    run_id: str
    repository: Path

    @cached_property
    def run(self) -> dict[str, Any]:
        return self.person.end_of(self.run_id)

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        assert self.run["status"] in ENDED
        return self.person.events(self.run_id)

    @property
    def outcome(self) -> tuple[str, str | None]:
        return self.run["status"], (self.run["error"] or {}).get("type")

    @property
    def branches(self) -> list[str]:
        return git("for-each-ref", "--format=%(refname:short)", "refs/heads", at=self.repository).splitlines()

    def told(self, type_: str) -> list[dict[str, Any]]:
        return of_type(self.events, type_)


def types_of(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def of_type(events: list[dict[str, Any]], type_: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["type"] == type_]


def open_calls(events: list[dict[str, Any]]) -> set[str]:
    """Calls without an end of their own, but for those that were lost with their sandbox (docs/api.md)."""
    calls: set[str] = set()
    for event in events:
        if event["type"] == "tool_started":
            calls.add(event["data"]["tool_id"])
        elif event["type"] in {"tool_completed", "tool_failed"}:
            calls.discard(event["data"]["tool_id"])
        elif event["type"] == "run_recovered":
            calls.clear()
    return calls


def refusal(answer: httpx.Response, status: int, type_: str) -> dict[str, Any]:
    """The error of an answer, after a look at its shape."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    document = answer.json()
    assert document.keys() == {"success", "error"}
    assert document["success"] is False
    error = dict(document["error"])
    assert error.keys() - {"details"} == {"type", "message", "retryable", "request_id"}
    assert (error["type"], error["retryable"]) == (type_, False)
    assert error["message"]
    assert error["request_id"]
    return error


# ---- repositories


def git(*words: str, at: Path, check: bool = True) -> str:
    environment = {
        "PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.com",
        "GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.com",
    }  # fmt: skip
    done = subprocess.run(["git", *words], cwd=at, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0 or not check, done.stderr
    return done.stdout.strip()


def make_repository(path: Path, files: Mapping[str, str | bytes]) -> Path:
    path.mkdir(parents=True)
    git("init", "-q", "-b", "main", at=path)
    for name, content in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    git("add", "-A", at=path)
    git("commit", "-qm", "the beginning", at=path)
    return path


# ---- scripts for the model


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "input": arguments}


def says(*tools: dict[str, Any], text: str | None = None, **more: Any) -> dict[str, Any]:
    """One reply of the model."""
    return {"tools": list(tools), **({"text": text} if text else {}), **more}


def plans(*checks: str, summary: str = "Do it.") -> dict[str, Any]:
    steps = {"steps": ["do it"], "files": [], "risks": [], "validation_commands": list(checks)}
    return says(tool("update_plan", summary=summary, **steps))


def shell(command: str, **more: Any) -> dict[str, Any]:
    return says(tool("run_command", command=command), **more)


def writes(path: str, content: str) -> dict[str, Any]:
    return says(tool("write_file", path=path, content=content))


def finishes(summary: str = "It is done.", status: str = "done") -> dict[str, Any]:
    return says(tool("finish", status=status, summary=summary))


def play(stack: Stack, words: str, *replies: dict[str, Any]) -> str:
    """From now on the model plays this script for tasks with these words, whoever asks. Returns the words."""
    stack.model.add({"name": words, "match": {"words": [words]}, "replies": list(replies)})
    return words


def new_task(stack: Stack, *replies: dict[str, Any]) -> str:
    """A task that nobody else has, with what the model does about it."""
    return play(stack, f"Play the script {uuid.uuid4().hex}", *replies)


def requests_for(stack: Stack, task: str) -> list[dict[str, Any]]:
    """What the model was asked in the runs of a task."""
    return [entry["body"] for entry in stack.model.requests if task in str(entry["body"]["messages"][:1])]


# ---- processes


def sandbox_processes(run_id: str) -> dict[int, int]:
    """Processes with the run's id in their environment, by pid, each with its attempt."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (environment := _environment(entry)).get("RUN_ID") == run_id:
            found[int(entry.name)] = int(environment["ATTEMPT"])
    return found


def processes_with(words: str) -> list[int]:
    """Processes whose command line has these words."""
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and words in _read(entry / "cmdline").replace("\0", " ")
    ]


def _environment(process: Path) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in _read(process / "environ").split("\0"))
    return {name: value for name, _, value in pairs}


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
