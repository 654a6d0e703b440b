"""From a commit to its branch at the remote, never forced. A branch that others have moved on is followed, if the work
fits there as it is; nobody has checked it there, so it is unverified then."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox_task.workspace import complaints, fetching
from sandbox_task.workspace.complaints import BranchMoved
from sandbox_task.workspace.git import GitError
from sandpiper import limits
from sandpiper.errors import RunError

if TYPE_CHECKING:
    from sandbox_task.workspace.repository import Repository
    from sandpiper.models.run import CommitInfo

_PASSED = re.compile(r"^Sandpiper-Gate: passed$", re.MULTILINE)
_KEPT = "so nothing was pushed; the work is kept as a diff."


def land(repository: Repository, commit: CommitInfo, *, author: tuple[str, str]) -> CommitInfo:
    """The commit as it was pushed: another one, if the branch had moved. Raises RunError in words."""
    follows = repository.start.continues_branch or repository.tip is not None
    for _ in range(limits.REBASES if follows else 0):
        # Looked at first: git itself would gladly push what somebody has just thrown away.
        head = _head(repository, commit.branch)
        if head not in {commit.sha, repository.git.text("rev-parse", f"{commit.sha}^")}:
            commit = _on_top(repository, commit, author)
        try:
            repository.push(commit.sha, commit.branch)
        except BranchMoved:
            continue
        return commit
    repository.push(commit.sha, commit.branch)
    return commit


def _head(repository: Repository, branch: str) -> str:
    try:
        found = repository.git.reach("ls-remote", "--heads", "--", "origin", f"refs/heads/{branch}").decode()
    except GitError as error:
        raise complaints.while_reading(error, repository.name) from error
    if not found:
        raise _gone(f"The branch {branch} of {repository.name} was deleted while the run was working, {_KEPT}")
    return found.partition("\t")[0]


def _on_top(repository: Repository, commit: CommitInfo, author: tuple[str, str]) -> CommitInfo:
    git, name = repository.git, f"The branch {commit.branch} of {repository.name}"
    try:
        theirs = fetching.fetch_other(git, f"refs/heads/{commit.branch}")
    except GitError as error:
        raise complaints.while_reading(error, repository.name) from error
    try:
        git.run("merge-base", "--is-ancestor", f"{commit.sha}^", theirs)
    except GitError as error:
        raise _gone(f"{name} was force-pushed while the run was working, {_KEPT}") from error
    try:
        tree = git.text("merge-tree", "--write-tree", theirs, commit.sha).splitlines()[0]
    except GitError as error:
        conflict = f"{name} has moved since this run began, and the work conflicts with what came, {_KEPT}"
        raise _gone(conflict) from error
    message = _PASSED.sub("Sandpiper-Gate: passed (unverified)", commit.message)
    is_there = tree == repository.tree_of(theirs)  # an earlier attempt may have put it there
    sha = theirs if is_there else repository.commit(tree, message, author=author, parent=theirs)
    return commit.model_copy(update={"sha": sha, "message": message, "verified": False})


def follow(repository: Repository, landed: CommitInfo) -> None:
    """What others had pushed is what the work is compared with from now on. Raises RunError in words."""
    try:
        sha = fetching.fetch_other(repository.git, landed.sha)
    except GitError as error:
        raise complaints.while_reading(error, repository.name) from error
    repository.move_to(repository.git.text("rev-parse", f"{sha}^"))


def _gone(message: str) -> RunError:
    return RunError("repository_error", message)
