"""What a turn costs beyond the model: a model that answers at once, and a trivial command.

Ours runs on the stack with events, log and wall on. The baseline is a bare loop on the same SDK that runs the command
with `subprocess`, against the same server with the same replies. Both are timed by the server: from one request of the
conversation to the next.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.stack import new_user, wait_until
from sandpiper_local.sample_repository import create_sample_repository

if TYPE_CHECKING:
    from bench.report import Report
    from bench.stack import Stack

TURNS = 40
ROUNDS = 3
GOAL = 2.5
BARE = """
import subprocess, sys, anthropic
client = anthropic.Anthropic(api_key="sk", base_url=sys.argv[1])
tool = {"name": "run_command", "description": "Run a shell command.", "input_schema": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}
finish = {"name": "finish", "description": "End.", "input_schema": {"type": "object", "properties": {}}}
messages = [{"role": "user", "content": sys.argv[2]}]
while True:
    asked = {"model": "claude-sonnet-5-5", "max_tokens": 1024, "tools": [tool, finish], "messages": messages}
    with client.messages.stream(**asked) as stream:
        reply = stream.get_final_message()
    messages.append({"role": "assistant", "content": reply.content})
    results = []
    for block in reply.content:
        if block.type != "tool_use":
            continue
        if block.name == "finish":
            sys.exit()
        done = subprocess.run(["bash", "-c", block.input["command"]], capture_output=True, text=True)
        told = done.stdout + f"[exit code {done.returncode}]"
        results.append({"type": "tool_result", "tool_use_id": block.id, "content": told})
    messages.append({"role": "user", "content": results})
"""


def run(report: Report, stack: Stack) -> None:
    samples = [(bare(stack), ours(stack)) for _ in range(ROUNDS)]
    base, mine = (statistics.median(column) for column in zip(*samples, strict=True))
    report.add(
        f"overhead of a turn (model answers at once, trivial command, median of {TURNS} turns × {ROUNDS})",
        measured=f"{mine * 1000:.1f} ms",
        baseline=f"{base * 1000:.1f} ms, a bare loop on the same SDK",
        ratio=f"{mine / base:.2f}×",
        goal=f"≤ {GOAL:g}×",
        met=mine <= GOAL * base,
    )


def bare(stack: Stack) -> float:
    words = script(stack)
    subprocess.run([sys.executable, "-c", BARE, stack.model.url, words], check=True, timeout=120)
    return gap(stack, words)


def ours(stack: Stack) -> float:
    words = script(stack)
    with tempfile.TemporaryDirectory() as directory:
        repository = create_sample_repository(Path(directory) / "repository")
        api = stack.api(new_user())
        run_id = api.start({"task": words, "repo": str(repository), "type": "code-review"}, headers={})["run_id"]
        wait_until(lambda: api.run(run_id)["status"] in {"completed", "failed"}, seconds=120)
    return gap(stack, words)


def script(stack: Stack) -> str:
    """A scenario of its own; the words by which the server finds it."""
    words = f"bench {uuid.uuid4().hex}"
    turns: list[dict[str, Any]] = [
        {"tools": [{"name": "run_command", "input": {"command": f"echo {number}"}}]} for number in range(TURNS)
    ]
    end = {"tools": [{"name": "finish", "input": {"status": "done", "summary": "Done."}}]}
    stack.model.add({"name": words, "match": {"words": [words]}, "replies": [*turns, end]})
    return words


def gap(stack: Stack, words: str) -> float:
    """The median time between two requests of the conversation; the first turns are left out as warming up."""
    times: list[float] = [entry["at"] for entry in stack.model.requests if words in str(entry["body"]["messages"][0])]
    return statistics.median(after - before for before, after in itertools.pairwise(times[5:]))
