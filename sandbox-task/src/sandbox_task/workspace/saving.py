"""Trees of work as small files: packs of what each has more than the ones before, to be read into another clone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox_task.workspace.git import OFFLINE, GitError
from sandpiper import limits
from sandpiper.errors import RunError

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.workspace.git import Git

# A commit on top of the base is what packs well; it is only a way to say "tree", so it has no author and no time.
_NOBODY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "saved"), ("EMAIL", "saved"), ("DATE", "@0 +0000"))
}


def name_tree(git: Git, tree: str, *, after: str | None) -> str:
    """The commit that stands for a tree which is saved after another one."""
    return git.text("commit-tree", tree, *(("-p", after) if after else ()), stdin=b"saved", extra_env=_NOBODY)


def save(git: Git, commit: str, path: Path, *, known: str | None) -> None:
    """What the commit and all before it have more than `known`, which whoever reads this has already."""
    wanted = f"{commit}\n^{known}\n" if known else f"{commit}\n"
    options = ("--revs", "--thin", "--delta-base-offset", "--stdout", "--quiet")
    with path.open("wb") as file:
        git.run("pack-objects", *options, stdin=wanted.encode(), stdout=file, seconds=limits.GIT_TRANSFER_SECONDS)


def load(git: Git, path: Path) -> None:
    """Raises RunError."""
    try:
        with path.open("rb") as file:
            git.run("index-pack", "--stdin", "--fix-thin", stdin=file, seconds=limits.GIT_TRANSFER_SECONDS)
    except GitError as error:
        raise _unreadable(error) from error


def require(git: Git, tree: str, *, base: str | None) -> None:
    """Raises RunError unless all of the tree is there."""
    known = (f"^{base}^{{tree}}",) if base else ()
    try:
        git.run("rev-list", "--quiet", "--objects", f"{tree}^{{tree}}", *known, extra_env=OFFLINE)
    except GitError as error:
        raise _unreadable(error) from error


def _unreadable(error: GitError) -> RunError:
    return RunError("repository_error", f"The saved work can't be read back: {error.complaint}")
