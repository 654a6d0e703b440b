"""A comment on the fake GitHub: how soon it is seen, and what its run asks of GitHub. The first one warms up."""

from __future__ import annotations

import contextlib
import itertools
import statistics
import time
import uuid
from typing import TYPE_CHECKING, Any

from bench.stack import wait_until
from sandpiper import limits
from sandpiper_local.fake_github.client import GitHubAdmin
from sandpiper_local.fake_github.sample import REPOSITORY, WRITER

if TYPE_CHECKING:
    from bench.report import Report
    from bench.stack import Stack

RUNS = 6
REACTION_SECONDS = 2.0
CALLS = 15
LONG_SECONDS = 12  # a run that is worth following: it reaches several milestones at once, and then some


def run(report: Report, stack: Stack) -> None:
    with contextlib.closing(GitHubAdmin(stack.info["github_url"])) as github:
        waits, calls = zip(*[_implement(stack, github, seconds=0) for _ in range(RUNS)], strict=True)
        _, long_calls = _implement(stack, github, seconds=LONG_SECONDS)
    slowest = max(waits[1:])
    report.add(
        "comment on GitHub → reaction, warm",
        measured=f"{statistics.median(waits[1:]):.2f} s (slowest {slowest:.2f} s, the first, cold {waits[0]:.2f} s)",
        goal=f"≤ {REACTION_SECONDS:g} s",
        met=slowest <= REACTION_SECONDS,
    )
    most = max(map(len, calls))
    report.add(
        "calls to GitHub's API in a run of `/implement`", measured=str(most), goal=f"≤ {CALLS}", met=most <= CALLS
    )
    gaps = [gap for made in (*calls, long_calls) for gap in _gaps(made)]
    report.add(
        f"status comment, between two edits while a run of up to {LONG_SECONDS} s works",
        measured=f"{min(gaps):.1f} s at least",
        goal=f"≥ {limits.STATUS_COMMENT_SECONDS} s",
        met=min(gaps) >= limits.STATUS_COMMENT_SECONDS,
    )


def _implement(stack: Stack, github: GitHubAdmin, *, seconds: int) -> tuple[float, list[dict[str, Any]]]:
    """Seconds to the reaction, and all calls that the run made."""
    task = f"Play the script {uuid.uuid4().hex}"
    stack.model.add({"name": task, "match": {"words": [task]}, "replies": _replies(seconds)})
    number = github.open_issue(REPOSITORY, "Bench", by=WRITER)
    github.fake("DELETE", "/calls")
    began = time.monotonic()
    comment = github.comment(REPOSITORY, number, f"/implement {task}", by=WRITER)
    where = f"/repos/{REPOSITORY}/issues"
    wait_until(lambda: bool(github.call("GET", f"{where}/comments/{comment['id']}/reactions", by=WRITER)), every=0.02)
    waited = time.monotonic() - began
    wait_until(lambda: "✅ done" in str(github.call("GET", f"{where}/{number}/comments", by=WRITER)))
    return waited, [call for call in github.calls if call["actor"] != WRITER]


def _replies(seconds: int) -> list[dict[str, Any]]:
    plan = {"summary": "Do it.", "steps": ["do it"], "files": [], "risks": [], "validation_commands": ["true"]}
    work = {"command": f"sleep {seconds}"}
    file = {"path": f"bench-{uuid.uuid4().hex}.txt", "content": "done\n"}
    done = {"status": "done", "summary": "Done."}
    tools = (("update_plan", plan), ("run_command", work), ("write_file", file), ("finish", done))
    return [{"tools": [{"name": name, "input": given}]} for name, given in tools]


def _gaps(calls: list[dict[str, Any]]) -> list[float]:
    """Between edits of the comment, but for the last: what comes of a run is told at once."""
    edits = [call["at"] for call in calls if call["method"] == "PATCH" and "/issues/comments/" in call["path"]]
    return [later - earlier for earlier, later in itertools.pairwise(edits[:-1])]
