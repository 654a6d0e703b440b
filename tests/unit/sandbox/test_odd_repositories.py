"""Repositories as people have them: shallow, with no branch checked out, or with the wanted branch in use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox_task.workspace.repository import Repository
from sandpiper.errors import RunError
from sandpiper.models.spec import RunSpec
from tests.unit.sandbox.git_server import TOKEN, GitServer

if TYPE_CHECKING:
    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall

AUTHOR = ("Sandpiper", "sandpiper@example.com")


def cloned(rooms: Rooms, wall: Wall, url: str) -> Repository:
    repository = Repository.clone(RunSpec(task="t", repo="o/r", repo_url=url), rooms, token=TOKEN)
    repository.deliver(wall)
    return repository


def push_new_file(repository: Repository, wall: Wall, branch: str) -> None:
    assert wall.run("echo new > new.txt", timeout=30, on_output=bytearray().extend).succeeded
    repository.push(repository.commit(repository.take_tree(wall), "new\n", author=AUTHOR), branch)


@pytest.fixture
def shallow(git_server: GitServer) -> str:
    """A repository that has its newest commit only, as `git clone --depth 1` makes it."""
    git_server.create("whole", {"a.txt": "one\n"})
    git_server.push("whole", {"a.txt": "two\n"})
    url = git_server.create("r")
    git_server.git("r", "fetch", "--quiet", "--depth=1", f"file://{git_server.root}/whole.git", "main:main")
    return url


def test_a_shallow_repository_can_be_worked_on(git_server: GitServer, rooms: Rooms, wall: Wall, shallow: str) -> None:
    repository = cloned(rooms, wall, shallow)
    assert repository.git.text("rev-list", "--count", str(repository.base_commit)) == "1"
    push_new_file(repository, wall, "work")
    assert git_server.git("r", "show", "work:a.txt", "work:new.txt") == "two\nnew\n"


def test_a_whole_repository_comes_with_all_of_its_history(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    url = git_server.create("r", {"a.txt": "one\n"})
    git_server.push("r", {"a.txt": "two\n"})
    repository = cloned(rooms, wall, url)
    assert repository.git.text("rev-list", "--count", str(repository.base_commit)) == "2"
    assert repository.git.text("rev-parse", "--is-shallow-repository") == "false"


def test_without_a_branch_checked_out_work_starts_from_the_commit_that_is(
    git_server: GitServer, rooms: Rooms, wall: Wall
) -> None:
    url = git_server.create("r", {"a.txt": "one\n"})
    first = git_server.git("r", "rev-parse", "main").strip()
    git_server.push("r", {"a.txt": "two\n"})
    git_server.git("r", "update-ref", "--no-deref", "HEAD", first)
    repository = cloned(rooms, wall, url)
    assert (repository.base_commit, repository.start.name) == (first, first[:12])


def test_a_branch_that_is_in_use_over_there_is_the_reason_that_is_given(
    git_server: GitServer, rooms: Rooms, wall: Wall
) -> None:
    url = git_server.create("r", {"a.txt": "one\n"})
    git_server.git("r", "config", "core.bare", "false")
    repository = cloned(rooms, wall, url)
    with pytest.raises(RunError, match="rejected the push to main: branch is currently checked out"):
        push_new_file(repository, wall, "main")


# What GitHub says to a push: of protected branches, and of rulesets.
PROTECTED = ["error: GH006: Protected branch update failed."]
RULES = [
    "error: GH013: Repository rule violations found for refs/heads/main.",
    "Review all repository rules at https://github.example/o/r/rules?ref=refs%2Fheads%2Fmain",
    "",
    "- Commits must have verified signatures.",
    "  Found 1 violation:",
]
VIOLATION = "GH013: Repository rule violations found for refs/heads/main. Commits must have verified signatures."


@pytest.mark.parametrize(("said", "told"), [(PROTECTED, "GH006: Protected branch update failed."), (RULES, VIOLATION)])
def test_what_the_server_says_of_a_push_that_it_rejects_is_the_reason_that_is_given(
    git_server: GitServer, rooms: Rooms, wall: Wall, said: list[str], told: str
) -> None:
    url = git_server.create("r", {"a.txt": "one\n"})
    hook = Path(git_server.git("r", "rev-parse", "--absolute-git-dir").strip()) / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("\n".join(["#!/bin/sh", *(f"echo '{line}' >&2" for line in said), "exit 1", ""]))
    hook.chmod(0o755)
    repository = cloned(rooms, wall, url)
    with pytest.raises(RunError) as refused:
        push_new_file(repository, wall, "main")
    assert refused.value.message.endswith(f"to main: pre-receive hook declined ({told})")
