"""What a conversation of 40 turns costs with prompt caching as the API prices it, and how large the first request is.

Ours is a real run on the stack; the scripted model counts tokens (a quarter of the characters) and keeps a prompt cache
by the API's rules. The goal is set against Claude Code as it was measured when the goal was set: a first body of 85 KB
and 3 breakpoints, here before our own messages. The version that installs here plays the same commands beside it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.peers import CLAUDE_CODE, MODEL
from bench.stack import new_user
from sandbox_task.model.catalogue import PriceList
from sandbox_task.model.port import TurnUsage
from sandpiper_local.sample_repository import create_sample_repository
from sandpiper_local.scripted_model.cache import PromptCache

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bench.report import Report
    from bench.stack import Stack

TURNS = 40
GOAL = 0.5
GOAL_BYTES = 12 * 1024
CLAUDE_CODE_BYTES = 85_000
MARK = {"cache_control": {"type": "ephemeral"}}
FINISH = {"status": "done", "summary": "Counted."}
OURS, THEIRS = "Count to four hundred, forty times.", "Count up to four hundred, again and again."


def run(report: Report, stack: Stack) -> None:
    stack.model.add(conversation("bench-ours", OURS, "run_command", last=[{"name": "finish", "input": FINISH}]))
    stack.model.add(conversation("bench-theirs", THEIRS, CLAUDE_CODE.tool, last=[]))
    with tempfile.TemporaryDirectory() as directory:
        repository = create_sample_repository(Path(directory) / "repository")
        ours = our_requests(stack, repository)
        theirs = claude_code_requests(stack, repository)
    report_first_body(report, ours[0]["body"])
    dollars = cost(entry["usage"] for entry in ours)
    reference = cost(as_claude_code([entry["body"] for entry in ours]))
    report_cost(report, dollars, reference, "the same messages with a first body of 85 KB, 3 breakpoints", goal=GOAL)
    if theirs:
        size = len(json.dumps(theirs[0]["body"])) / 1000
        what = f"{CLAUDE_CODE.name}, run here, first body {size:.0f} KB"
        report_cost(report, dollars, cost(entry["usage"] for entry in theirs), what)


def conversation(name: str, words: str, tool: str, *, last: list[dict[str, Any]]) -> dict[str, Any]:
    turns = [
        {"text": f"Step {n}.", "tools": [{"name": tool, "input": {"command": f"echo step {n}; seq 1 400"}}]}
        for n in range(1, TURNS)
    ]
    return {"name": name, "match": {"words": [words]}, "replies": [*turns, {"text": "Done.", "tools": last}]}


def our_requests(stack: Stack, repository: Path) -> list[dict[str, Any]]:
    sandpiper = str(Path(sys.executable).with_name("sandpiper"))
    command = [sandpiper, "--token", stack.token(new_user()), "run", "--repo", str(repository), OURS]
    environment = {"PATH": os.environ["PATH"], "SANDPIPER_ENDPOINT": stack.api_url}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True, timeout=300)
    return requests_of(stack, "bench-ours")


def claude_code_requests(stack: Stack, repository: Path) -> list[dict[str, Any]]:
    """Empty where it can't be installed or does not play the conversation to its end."""
    CLAUDE_CODE.play(THEIRS, stack.model.url, repository)
    found = requests_of(stack, "bench-theirs")
    return found if len(found) == TURNS else []


def requests_of(stack: Stack, scenario: str) -> list[dict[str, Any]]:
    return [entry for entry in stack.model.requests if entry.get("scenario") == scenario]


def as_claude_code(bodies: list[dict[str, Any]]) -> Iterable[Mapping[str, int]]:
    cache = PromptCache()
    own = CLAUDE_CODE_BYTES - len(json.dumps(bodies[0]["messages"]))
    parts = (own // 4, own * 3 // 4)
    system = [{"type": "text", "text": "x" * part, **MARK} for part in parts]
    for body in bodies:
        messages = [message | {"content": unmarked(message["content"])} for message in body["messages"]]
        messages[-1]["content"][-1] |= MARK
        yield cache.usage({"model": MODEL, "system": system, "messages": messages})


def unmarked(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in block.items() if key != "cache_control"} for block in content]


def cost(usages: Iterable[Mapping[str, int]]) -> float:
    """Of what goes in: what comes out is the same for all."""
    return sum(
        PriceList().cost_usd(
            MODEL,
            TurnUsage(
                input_tokens=usage["input_tokens"],
                cache_read_tokens=usage["cache_read_input_tokens"],
                cache_write_tokens=usage["cache_creation_input_tokens"],
            ),
        )
        for usage in usages
    )


def report_cost(report: Report, ours: float, theirs: float, what: str, *, goal: float | None = None) -> None:
    report.add(
        f"input of {TURNS} turns, priced with caching",
        measured=f"$ {ours:.4f}",
        baseline=f"$ {theirs:.4f}, {what}",
        ratio=f"{ours / theirs:.2f}×",
        goal=f"≤ {goal}×" if goal else "–",
        met=goal is None or ours <= goal * theirs,
    )


def report_first_body(report: Report, body: Mapping[str, Any]) -> None:
    system, tools = (len(json.dumps(body[part], ensure_ascii=False).encode()) for part in ("system", "tools"))
    report.add(
        "system prompt and tools of the first request, sample repository",
        measured=f"{(system + tools) / 1024:.1f} KB ({system / 1024:.1f} + {tools / 1024:.1f})",
        goal=f"≤ {GOAL_BYTES // 1024} KB",
        met=system + tools <= GOAL_BYTES,
    )
