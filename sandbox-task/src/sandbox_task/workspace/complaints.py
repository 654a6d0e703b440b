"""What git complains about, in words for the person who started the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper.errors import RunError

if TYPE_CHECKING:
    from sandbox_task.workspace.git import GitError

_AUTHENTICATION = (
    "authentication failed",
    "could not read username",
    "could not read password",
    "error: 401",
    "error: 403",
)
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


def while_reading(error: GitError, repo: str) -> RunError:
    said = error.complaint.lower()
    if any(sign in said for sign in _AUTHENTICATION):
        return _repository(
            f"The repository {repo} refused the access: the token is wrong, has expired, or may not read it."
        )
    if any(sign in said for sign in _MISSING):
        return _repository(f"There is no repository {repo}, or the token may not see it.")
    if any(sign in said for sign in _UNREACHABLE):
        return _repository(f"The server of {repo} could not be reached: {_last_line(error)}", retryable=True)
    return _repository(f"The repository {repo} could not be read: {_last_line(error)}")


def while_pushing(error: GitError, repo: str, branch: str) -> RunError:
    said = error.complaint.lower()
    if any(sign in said for sign in _AUTHENTICATION):
        return _repository(f"The repository {repo} refused the push to {branch}: the token may not write to it.")
    if any(sign in said for sign in _FORBIDDEN):
        return _repository(f"The repository {repo} rejected the push to {branch}: {_last_line(error)}")
    if any(sign in said for sign in _REJECTED):
        return _repository(f"The branch {branch} of {repo} has moved since this run began, so nothing was pushed.")
    if any(sign in said for sign in _UNREACHABLE):
        return _repository(f"The server of {repo} could not be reached for the push.", retryable=True)
    return _repository(f"The push to {branch} of {repo} failed: {_last_line(error)}")


def _repository(message: str, *, retryable: bool = False) -> RunError:
    return RunError("repository_error", message, retryable=retryable)


def _last_line(error: GitError) -> str:
    return error.complaint.splitlines()[-1] if error.complaint else "no reason given"
