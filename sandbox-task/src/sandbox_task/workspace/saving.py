"""A tree of work as one small file: a pack of what it has more than the base commit, to be read into another clone."""

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


def save_tree(git: Git, tree: str, path: Path, *, base: str | None) -> None:
    commit = git.text("commit-tree", tree, *(("-p", base) if base else ()), stdin=b"saved", extra_env=_NOBODY)
    wanted = f"{commit}\n^{base}\n" if base else f"{commit}\n"
    options = ("--revs", "--thin", "--delta-base-offset", "--stdout", "--quiet")
    with path.open("wb") as file:
        git.run("pack-objects", *options, stdin=wanted.encode(), stdout=file, seconds=limits.GIT_TRANSFER_SECONDS)


def load_tree(git: Git, path: Path, tree: str, *, base: str | None) -> None:
    """Raises RunError unless all of the tree is there afterwards."""
    known = (f"^{base}^{{tree}}",) if base else ()
    try:
        with path.open("rb") as file:
            git.run("index-pack", "--stdin", "--fix-thin", stdin=file, seconds=limits.GIT_TRANSFER_SECONDS)
        git.run("rev-list", "--quiet", "--objects", f"{tree}^{{tree}}", *known, extra_env=OFFLINE)
    except GitError as error:
        raise RunError("repository_error", f"The saved work can't be read back: {error.complaint}") from error
