"""What a person finds on a fresh fake GitHub: the sample project with an issue, and the App installed on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper_local.sample_repository import SAMPLE_DIR, sample_task

if TYPE_CHECKING:
    from sandpiper_local.fake_github.client import GitHubAdmin

REPOSITORY = "acme/tillroll"
WRITER = "ann"
READER = "rob"
TITLE = "Discounts lose a cent"


def seed(github: GitHubAdmin) -> int:
    """Returns the number of the issue."""
    directory = SAMPLE_DIR / "repository"
    files = {
        str(file.relative_to(directory)): file.read_text(encoding="utf-8")
        for file in sorted(directory.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }
    github.add_repository(REPOSITORY, files, permissions={WRITER: "write", READER: "read"}, private=False)
    number = github.open_issue(REPOSITORY, TITLE, sample_task().task, by=WRITER)
    github.install("acme", [REPOSITORY])  # last: an App hears nothing of what was before it came
    return number
