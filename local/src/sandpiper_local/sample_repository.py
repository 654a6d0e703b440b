"""The sample project as a git repository, and the task that is asked of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

SAMPLE_DIR = Path(__file__).parent / "sample"
SCENARIOS_DIR = SAMPLE_DIR / "scenarios"
_AUTHOR = ("-c", "user.name=Sandpiper Demo", "-c", "user.email=demo@sandpiper.invalid")


class SampleTask(NamedTuple):
    type: str
    branch: str
    task: str


def sample_task() -> SampleTask:
    return SampleTask(**yaml.safe_load((SAMPLE_DIR / "task.yaml").read_text(encoding="utf-8")))


def create_sample_repository(directory: Path) -> Path:
    """A fresh repository with one commit on `main`."""
    shutil.copytree(SAMPLE_DIR / "repository", directory, ignore=shutil.ignore_patterns("__pycache__"))
    git(directory, "init", "--quiet", "--initial-branch=main")
    git(directory, "add", "--all")
    git(directory, *_AUTHOR, "commit", "--quiet", "--message=Basket with its tests")
    return directory


def git(directory: Path, *arguments: str) -> str:
    """Whatever the user's own git settings are, they stay out of it."""
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=_environment(os.environ), capture_output=True, text=True, check=True
    )
    return done.stdout


def _environment(outside: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in outside.items() if not name.startswith("GIT_")}
    return kept | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
