"""What the remote repository has, and which commit a run starts from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox_task.workspace import complaints
from sandbox_task.workspace.git import Git, GitError
from sandbox_task.workspace.names import printable
from sandpiper import limits
from sandpiper.errors import RunError

if TYPE_CHECKING:
    from sandpiper.models.github import PullRequest
    from sandpiper.models.spec import RunSpec

_BRANCHES_NAMED = 10
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class Start:
    """`ref` is what is fetched (a full ref or a commit id); `name` is for people. Neither: nothing is there yet.

    `settled` is where a branch that is continued would be merged: whoever writes to the branch does not decide there.
    """

    ref: str | None
    name: str | None
    continues_branch: bool = False
    settled: str | None = None


def find_start(git: Git, spec: RunSpec) -> Start:
    """Raises RunError in words."""
    repo = spec.repo or spec.repo_url or ""
    if spec.github and spec.github.pull:
        return _of_pull(git, spec.github.number, spec.github.pull, repo)
    for name in filter(None, (spec.branch, spec.base)):
        _require_valid_name(git, name)
    refs, default = _list_refs(git, spec, repo)
    if spec.branch and f"refs/heads/{spec.branch}" in refs:
        settled = _named(spec.base, refs, repo).ref if spec.base else default
        return Start(f"refs/heads/{spec.branch}", spec.branch, continues_branch=True, settled=settled)
    if spec.base:
        return _named(spec.base, refs, repo)
    if default:
        return Start(default, default.removeprefix("refs/heads/"))
    if "HEAD" in refs:  # detached
        return Start(refs["HEAD"], refs["HEAD"][:12])
    return _only_branch(git, repo)


def _of_pull(git: Git, number: int, pull: PullRequest, repo: str) -> Start:
    """Its branch while that is there and ours to push to; else GitHub's own ref of it, which any fork has here, too."""
    for name in (pull.head_ref, pull.base_ref):
        _require_valid_name(git, name)
    branch, settled, own = f"refs/heads/{pull.head_ref}", f"refs/heads/{pull.base_ref}", f"refs/pull/{number}/head"
    rows = _ls_remote(git, repo, "--", "origin", branch, settled, own).splitlines()
    refs = {row.partition("\t")[2] for row in rows}
    if settled not in refs:
        complaint = f"The repository {repo} no longer has the branch {pull.base_ref!r} that #{number} is to go into."
        raise RunError("repository_error", complaint)
    if branch in refs and not pull.from_fork:
        return Start(branch, pull.head_ref, continues_branch=True, settled=settled)
    return Start(own if own in refs else pull.head_sha, f"#{number}", settled=settled)


def branch_commit(git: Git, url: str, branch: str, repo: str) -> str | None:
    """Where the branch is now, if it is there. Raises RunError in words."""
    return _ls_remote(git, repo, "--", url, f"refs/heads/{branch}").partition("\t")[0] or None


def _only_branch(git: Git, repo: str) -> Start:
    """HEAD leads nowhere. Where there is no choice, none has to be made."""
    rows = _ls_remote(git, repo, "--heads", "--", "origin").splitlines()
    branches = [row.partition("\trefs/heads/")[2] for row in rows]
    if len(branches) > 1:
        some = ", ".join(printable(branch) for branch in branches[:_BRANCHES_NAMED])
        complaint = (
            f"The repository {repo} has no default branch: name one of its {len(branches)} with `base` ({some})."
        )
        raise RunError("repository_error", complaint)
    return Start(f"refs/heads/{branches[0]}", branches[0]) if branches else Start(None, None)


def _named(base: str, refs: dict[str, str], repo: str) -> Start:
    for ref in (f"refs/heads/{base}", f"refs/tags/{base}"):
        if ref in refs:
            return Start(ref, base)
    if _SHA.fullmatch(base):
        return Start(base, base)
    raise RunError("repository_error", f"The repository {repo} has no branch or tag {base!r} to start from.")


def _list_refs(git: Git, spec: RunSpec, repo: str) -> tuple[dict[str, str], str | None]:
    """The refs that matter with their commits, and the one that HEAD points to."""
    names = [f"refs/heads/{name}" for name in filter(None, (spec.branch, spec.base))]
    tags = [f"refs/tags/{spec.base}"] if spec.base else []
    refs, default = {}, None
    for line in _ls_remote(git, repo, "--symref", "--", "origin", "HEAD", *names, *tags).splitlines():
        value, _, ref = line.partition("\t")
        if value.startswith("ref: "):
            default = value.removeprefix("ref: ")
        else:
            refs[ref] = value
    return refs, default if "HEAD" in refs else None


def _ls_remote(git: Git, repo: str, *arguments: str) -> str:
    try:
        return git.read_remote("ls-remote", *arguments, seconds=limits.GIT_SECONDS).decode(errors="surrogateescape")
    except GitError as error:
        raise complaints.while_reading(error, repo) from error


def _require_valid_name(git: Git, name: str) -> None:
    try:
        git.run("check-ref-format", f"refs/heads/{name}")
    except GitError as error:
        raise RunError("repository_error", f"{name!r} is no name that a branch can have.") from error
