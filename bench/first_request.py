"""From `sandpiper run` at a prompt to the first request at the model, on a running stack.

All of it counts: the start of the command line, the API, the state machine, the sandbox, the clone. The baseline is a
bare script that imports the same SDK and asks the same model. A ratio below 1 is no magic: the local ECS agent has
imported the SDK before the run begins. In a container on AWS the import comes on top.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.stack import new_user, wait_until
from sandpiper_local.sample_repository import create_sample_repository

if TYPE_CHECKING:
    from bench.report import Report
    from bench.stack import Stack

RUNS = 5
GOAL_SECONDS = 3.0
BARE = """
import sys, anthropic
client = anthropic.Anthropic(api_key="sk", base_url=sys.argv[1])
client.messages.create(model="claude-sonnet-5-5", max_tokens=9, messages=[{"role": "user", "content": "?"}])
"""


def run(report: Report, stack: Stack) -> None:
    with tempfile.TemporaryDirectory() as directory:
        repository = create_sample_repository(Path(directory) / "repository")
        started(stack, repository)  # the first run also starts the functions that it passes through
        samples = [(bare(stack), started(stack, repository)) for _ in range(RUNS)]
    base, ours = (statistics.median(column) for column in zip(*samples, strict=True))
    longest = max(sample[1] for sample in samples)
    report.add(
        "`sandpiper run` → first model request, median",
        measured=f"{ours:.2f} s (longest of {RUNS}: {longest:.2f} s)",
        baseline=f"{base:.2f} s, a bare script with the same SDK",
        ratio=f"{ours / base:.2f}×",
        goal=f"≤ {GOAL_SECONDS:g} s",
        met=ours <= GOAL_SECONDS,
    )


def bare(stack: Stack) -> float:
    return until_asked(stack, [sys.executable, "-c", BARE, stack.model.url])


def started(stack: Stack, repository: Path) -> float:
    """The run is followed to its end, so that it does not disturb the next."""
    sandpiper = str(Path(sys.executable).with_name("sandpiper"))
    command = [sandpiper, "--token", stack.token(new_user()), "run", "--repo", str(repository), "Look around."]
    return until_asked(stack, command)


def until_asked(stack: Stack, command: list[str]) -> float:
    environment = {"PATH": os.environ["PATH"], "SANDPIPER_ENDPOINT": stack.api_url}
    before = len(stack.model.requests)
    begin = time.perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: len(stack.model.requests) > before)
        seconds = time.perf_counter() - begin
        process.wait(timeout=60)
    return seconds
