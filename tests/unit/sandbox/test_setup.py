"""Runs in repositories that have something run first: what that changes is nobody's work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper.models.run import DiffStat
from sandpiper.models.spec import RunSpec
from tests.unit.sandbox.world import World, done, plan, run, write

if TYPE_CHECKING:
    from tests.unit.sandbox.git_server import GitServer

FILES = {
    "answer": "41\n",
    "lock": "1\n",
    "old": "x\n",
    ".sandpiper.yml": "setup: echo 2 >> lock; echo made > generated; rm old; mkdir old; touch old/new\n",
}


def spec(url: str, **more: Any) -> RunSpec:
    return RunSpec(**{"task": "Make the answer right", "type": "bug-fix", "repo": "o/r", "repo_url": url, **more})


def test_what_the_setup_changed_is_no_part_of_the_work(world: World, git_server: GitServer) -> None:
    turns = [plan("test -s generated -a -f old/new"), write("answer", "42\n"), done()]
    world.perform(spec(git_server.create("r", FILES)), turns)
    assert world.result.commit is not None
    changed = git_server.git("r", "diff", "--name-only", "main", world.result.commit.branch).split()
    assert changed == ["answer"]
    assert world.result.diff_stat == DiffStat(files=1, insertions=1, deletions=1)
    assert "generated" not in world.diff
    assert world.told("warning")[0]["paths"] == ["generated", "lock", "old", "old/new"]


def test_what_the_work_changed_after_the_setup_is_part_of_it(world: World, git_server: GitServer) -> None:
    turns = [plan("test -e lock"), run("echo 3 >> lock; rm generated"), done()]
    world.perform(spec(git_server.create("r", FILES)), turns)
    assert world.result.commit is not None
    assert git_server.git("r", "diff", "--name-only", "main", world.result.commit.branch).split() == ["lock"]
    assert git_server.git("r", "show", f"{world.result.commit.branch}:lock") == "1\n2\n3\n"


def test_a_run_that_changes_nothing_does_not_commit_what_its_setup_did(world: World, git_server: GitServer) -> None:
    world.perform(spec(git_server.create("r", FILES)), [plan(), done()])
    assert world.told("commit_skipped") == [{"reason": "Nothing was changed."}]


def test_a_read_only_run_is_not_blamed_for_its_setup(world: World, git_server: GitServer) -> None:
    turns = [plan(), run("touch litter"), done()]
    world.perform(spec(git_server.create("r", FILES), type="code-review"), turns)
    assert (world.result.outcome, world.diff) == ("completed", "")
