"""The next tree without git is the one that git would have taken."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sandbox_task.workspace.git import Git
from sandbox_task.workspace.known_tree import KnownTree, NotSoEasy
from sandbox_task.workspace.narrowing import Narrowing
from sandbox_task.workspace.taking import Taking
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ODD = os.fsdecode(b"\xff odd\n\xc3\xa4")
FILES = ("a/b/one", "a/two", "a-b", "a.b", "three", f"{ODD}/{ODD}", "ignored/file", ".gitignore")


@pytest.fixture
def git(tmp_path: Path) -> Git:
    root = tmp_path / "work"
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("ignored/\n" if name == ".gitignore" else f"{name!r}")
    (root / "link").symlink_to("three")
    git = Git(tmp_path / "git", root)
    git.run("init", "--quiet", "--template=")
    return git


def by_git(git: Git) -> str:
    git.run("add", "--all", "--", ":/")
    return git.text("write-tree")


@pytest.mark.parametrize(
    "changed",
    [("three",), ("a/b/one",), ("a-b", "a.b", "a/two"), (f"{ODD}/{ODD}", "a/b/one"), ("ignored/file",)],
)
def test_other_contents_make_the_tree_that_git_would_take(git: Git, changed: tuple[str, ...]) -> None:
    known = KnownTree.read(git, by_git(git))
    for number in range(2):
        for name in changed:
            (git.work_tree / name).write_text(f"{name!r} {number}")
        taken = known.take(git.work_tree, changed)
        git.run("fsck", "--strict", "--no-dangling", taken)
        assert taken == known.tree == by_git(git)


def test_a_file_that_becomes_a_program_and_one_that_stays_as_it_is_are_taken_so(git: Git) -> None:
    known = KnownTree.read(git, by_git(git))
    (git.work_tree / "a/two").chmod(0o755)
    assert known.take(git.work_tree, ("a/two", "three", "link")) == by_git(git)


def become_a_link(root: Path) -> None:
    (root / "three").unlink()
    (root / "three").symlink_to("/etc/passwd")


def become_a_pipe(root: Path) -> None:
    (root / "three").unlink()
    os.mkfifo(root / "three")


@pytest.mark.parametrize(
    "act",
    [
        become_a_link,
        become_a_pipe,
        lambda root: (root / "three").unlink(),
        lambda root: (root / "three").write_bytes(b"x" * (limits.FOOTPRINT_FILE_BYTES + 1)),
    ],
)
def test_what_is_no_small_file_is_left_to_git(git: Git, act: Callable[[Path], None]) -> None:
    tree = by_git(git)
    known = KnownTree.read(git, tree)
    act(git.work_tree)
    with pytest.raises(NotSoEasy):
        known.take(git.work_tree, ("a/two", "three"))
    assert known.tree == tree


def test_what_is_ignored_from_now_on_is_left_to_git(git: Git) -> None:
    known = KnownTree.read(git, by_git(git))
    (git.work_tree / ".gitignore").write_text("")
    with pytest.raises(NotSoEasy):
        known.take(git.work_tree, (".gitignore",))


def test_after_a_tree_that_git_took_the_next_one_starts_from_that(git: Git) -> None:
    taking = Taking(git, "", Narrowing(), has_submodules=False)
    first = by_git(git)
    (git.work_tree / "three").write_text("changed")
    second = taking.take_contents(first, ("three",))
    assert second is not None
    (git.work_tree / "new").write_text("new")
    third = by_git(git)
    (git.work_tree / "a/two").write_text("changed")
    assert taking.take_contents(third, ("a/two",)) == by_git(git) != second


def test_many_files_are_left_to_one_git(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FOOTPRINT_CHANGED", 1)
    first = by_git(git)
    (git.work_tree / "three").write_text("changed")
    taken = Taking(git, "", Narrowing(), has_submodules=False).take_contents(first, ("three", "a/two"))
    assert taken == by_git(git) != first
