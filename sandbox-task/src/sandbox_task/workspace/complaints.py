"""What git complains about, in words for the person who started the run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox_task.workspace.git import MOVED, REFUSED
from sandpiper.errors import RunError

if TYPE_CHECKING:
    from sandbox_task.workspace.git import GitError

_MISSING = ("not found", "error: 404", "does not appear to be a git repository", "error: 410")
_UNREACHABLE = (
    "could not resolve",
    "failed to connect",
    "couldn't connect",
    "connection refused",
    "timed out",
    "reset by peer",
)
_REJECTED = ("[rejected]", "non-fast-forward", "fetch first", "stale info")
_FORBIDDEN = ("[remote rejected]", "protected branch", "pre-receive hook declined")
_ARCHIVED = ("was archived", "is archived")
_RENAMED = "The repository {repo} was renamed or moved. Ask again under its new name."
_NO_PUSH = (
    (_ARCHIVED, "The repository {repo} is archived, so nothing can be pushed to it."),
    (REFUSED, "The repository {repo} refused the push to {branch}: the token may not write to it."),
    (MOVED, _RENAMED),
)
_SERVER_LINES = 3
_REASONS = ("error: ", "fatal: ", "! [remote rejected]")


class BranchMoved(RunError):
    """Somebody else has pushed to the branch."""


def while_reading(error: GitError, repo: str) -> RunError:
    said = error.complaint.lower()
    if any(sign in said for sign in REFUSED):
        return _repository(
            f"The repository {repo} refused the access: the token is wrong, has expired, or may not read it."
        )
    if any(sign in said for sign in _MISSING):
        return _repository(f"There is no repository {repo}, or the token may not see it.")
    if any(sign in said for sign in MOVED):
        return _repository(_RENAMED.format(repo=repo))
    if any(sign in said for sign in _UNREACHABLE):
        return _repository(f"The server of {repo} could not be reached: {_reason(error)}", retryable=True)
    return _repository(f"The repository {repo} could not be read: {_reason(error)}")


def while_checking_out(error: GitError, repo: str) -> RunError:
    return _repository(f"The files of {repo} could not be checked out: {_reason(error)}")


def while_pushing(error: GitError, repo: str, branch: str) -> RunError:
    said = error.complaint.lower()
    for signs, sentence in _NO_PUSH:
        if any(sign in said for sign in signs):
            return _repository(sentence.format(repo=repo, branch=branch))
    if any(sign in said for sign in _FORBIDDEN):
        return _repository(f"The repository {repo} rejected the push to {branch}: {_rejection(error)}")
    if any(sign in said for sign in _REJECTED):
        moved = f"The branch {branch} of {repo} has moved since this run began, so nothing was pushed."
        return BranchMoved("repository_error", moved)
    if any(sign in said for sign in _UNREACHABLE):
        return _repository(f"The server of {repo} could not be reached for the push.", retryable=True)
    return _repository(f"The push to {branch} of {repo} failed: {_reason(error)}")


def _repository(message: str, *, retryable: bool = False) -> RunError:
    return RunError("repository_error", message, retryable=retryable)


def _reason(error: GitError) -> str:
    """Git says first what went wrong, and then what could not be done because of it."""
    lines = error.complaint.splitlines() or ["no reason given"]
    return next((line.strip() for line in lines if line.strip().startswith(_REASONS)), lines[-1])


def _rejection(error: GitError) -> str:
    """Git gives the server's reason in brackets at the end of one line; what the server says of it stands before."""
    found = re.search(r"\[remote rejected\].*\((.+)\)$", error.complaint, re.MULTILINE)
    said = " ".join(re.findall(r"^remote: (?:error:|-) (.*\S)", error.complaint, re.MULTILINE)[:_SERVER_LINES])
    return " ".join([found[1] if found else _reason(error), *([f"({said})"] if said else [])])
