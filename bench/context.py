"""Collecting the context of a repository of 30,000 files, against git alone listing and searching the same files."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.report import Report

FILES = 30_000
ROUNDS = 3
GOAL_SECONDS = 3.0
GOAL_MEGABYTES = 200
TASK = "Fix the rounding of basket_total in `src/module7/file_7.py`: the discount of a returning customer is lost."
WORDS = ("basket_total", "rounding", "basket", "discount", "returning", "customer", "lost")
COLLECT = """
import resource, sys, time
from pathlib import Path
from sandbox_task.agent.context.collect import collect
from sandbox_task.isolation.launch import Rooms
from sandbox_task.workspace.git import Git
from sandbox_task.workspace.repository import Repository
from sandpiper.models.spec import RunSpec
root, task = Path(sys.argv[1]), sys.argv[2]
git = Git(root / ".git", root)
tree = git.text("rev-parse", "HEAD^{tree}")
repository = Repository(git, Rooms(root, root, root, root), RunSpec(task=task), base_tree=tree)
begin = time.perf_counter()
found = collect(repository, task)
seconds = time.perf_counter() - begin
assert "src/module7/file_7.py" in found.included, found.included
kilobytes = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(seconds, kilobytes / 1024, found.tokens)
"""


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        generate(root)
        samples = [(git_alone(root), collected(root)) for _ in range(ROUNDS)]
    baseline, (seconds, megabytes, tokens) = min(base for base, _ in samples), min(ours for _, ours in samples)
    report.add(
        f"context of a repository of {FILES:,} files",
        measured=f"{seconds:.2f} s, {megabytes:.0f} MB with git's own, {tokens:.0f} tokens",
        baseline=f"{baseline:.2f} s, `git ls-tree -r` and `git grep` of the same words",
        ratio=f"{seconds / baseline:.2f}×",
        goal=f"≤ {GOAL_SECONDS:g} s, ≤ {GOAL_MEGABYTES} MB",
        met=seconds <= GOAL_SECONDS and megabytes <= GOAL_MEGABYTES,
    )


def generate(root: Path) -> None:
    """Files of about 3 KB in 600 directories, as a clone has them: in one pack."""
    for number in range(FILES):
        path = (
            root
            / "src"
            / f"module{number % 60}"
            / (f"part{number % 600}" if number >= 60 else "")
            / f"file_{number}.py"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"def f_{number}_{n}(value):\n    return value * {number} + {n}\n" for n in range(55)))
    git = ("git", "-C", str(root), "-c", "user.name=b", "-c", "user.email=b", "-c", "gc.auto=0")
    for arguments in (
        ("init", "-q"),
        ("add", "-A"),
        ("commit", "-q", "-m", "b"),
        ("repack", "-adq"),
        ("prune-packed",),
    ):
        subprocess.run([*git, *arguments], check=True)


def git_alone(root: Path) -> float:
    begin = time.perf_counter()
    subprocess.run(["git", "-C", str(root), "ls-tree", "-r", "HEAD"], check=True, stdout=subprocess.DEVNULL)
    words = [part for word in WORDS for part in ("-e", word)]
    grep = ["git", "-C", str(root), "grep", "-i", "-F", "-l", *words, "HEAD"]
    subprocess.run(grep, check=False, stdout=subprocess.DEVNULL)  # finds nothing, which git calls a failure
    return time.perf_counter() - begin


def collected(root: Path) -> tuple[float, ...]:
    done = subprocess.run([sys.executable, "-c", COLLECT, str(root), TASK], check=True, capture_output=True, text=True)
    return tuple(map(float, done.stdout.split()))
