"""Files become one commit on a branch: all of them or none, once, and never over what somebody else has pushed."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from sandpiper.errors import Conflict, NotFound, ValidationError
from sandpiper.models.commits import CommitView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandpiper.github_ports import CommitTarget, Tip
    from sandpiper.models.commits import CommitRequest


def commit_files(target: CommitTarget, request: CommitRequest) -> CommitView:
    """Safe to repeat: what is there already with the same message is not committed again.

    Raises Conflict, NotFound, ValidationError, GitHubError.
    """
    base = _base(target, request)
    sha = _commit(target, request, base)
    return CommitView(
        sha=sha, url=target.url_of(sha), branch=request.branch, pr_url=_pull(target, request, base) if base else None
    )


def _base(target: CommitTarget, request: CommitRequest) -> str | None:
    """What a new branch starts from and a pull request goes to; None if nobody asks."""
    if not request.create_branch and not request.create_pr:
        return None
    base = request.base_branch or target.default_branch()
    if request.create_pr and base == request.branch:
        raise _about("branch", f"is {base} itself, to which the pull request would go")
    return base


def _commit(target: CommitTarget, request: CommitRequest, base: str | None) -> str:
    existing = target.tip(request.branch)
    start = existing or _start(target, request, base)
    tree = target.tree(start.tree, _contents(request))
    if tree == start.tree:
        return _already(request, existing)
    if request.expected_sha not in {None, start.sha}:
        raise Conflict(f"{request.branch if existing else base} is at {start.sha}, not at {request.expected_sha}.")
    sha = target.commit(request.message, tree=tree, parent=start.sha)
    if existing:
        target.move_branch(request.branch, sha)
    else:
        target.create_branch(request.branch, sha)
    return sha


def _start(target: CommitTarget, request: CommitRequest, base: str | None) -> Tip:
    if not request.create_branch or base is None:
        raise NotFound(
            f"There is no branch {request.branch} in {request.repo} that the token may see; `create_branch` makes one."
        )
    if (tip := target.tip(base)) is None:
        raise _about("base_branch", f"names {base}, which does not exist")
    return tip


def _already(request: CommitRequest, existing: Tip | None) -> str:
    if existing and existing.message.strip() == request.message.strip():
        return existing.sha
    raise Conflict("The files are like this already: there is nothing to commit.")


def _contents(request: CommitRequest) -> Mapping[str, bytes | None]:
    def decoded(content: str | None, encoding: str) -> bytes | None:
        if content is None:
            return None
        return base64.b64decode(content) if encoding == "base64" else content.encode()

    return {file.path: decoded(file.content, file.encoding) for file in request.files}


def _pull(target: CommitTarget, request: CommitRequest, base: str) -> str | None:
    if not request.create_pr:
        return None
    title = request.pr_title or request.message.strip().partition("\n")[0]
    return target.open_pull(request.branch, base) or target.create_pull(
        request.branch, base, title=title, body=request.pr_body or ""
    )


def _about(field: str, message: str) -> ValidationError:
    return ValidationError(f"{field} {message}.", details=[{"field": field, "message": message}])
