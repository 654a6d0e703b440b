"""Every failure a person can be told about: one class, one stable name, one HTTP status each.

SandpiperError
├── ValidationError        422   the request is wrong; `details` names the field
├── BadRequest             400   the request can't be read at all (malformed JSON, a tampered cursor)
├── AuthenticationError    401
├── PermissionDenied       403
├── NotFound               404   also for what belongs to somebody else
├── MethodNotAllowed       405
├── Conflict               409
│   └── InProgress         409   the same request is being worked on: try again
├── QuotaExceeded          429
├── GitHubError            502   GitHub refused or failed; `code` is its own status
├── Unavailable            503   a service did not answer in time; nothing was done
└── RunError                     why a run ended badly; never a status code of its own
"""

from __future__ import annotations

from typing import Any


class SandpiperError(Exception):
    """Base of all errors with a message meant for people."""

    type = "internal_error"
    status = 500
    retryable = False

    def __init__(self, message: str, *, details: list[dict[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class ValidationError(SandpiperError):
    type = "validation_error"
    status = 422


class BadRequest(SandpiperError):
    type = "validation_error"
    status = 400


class AuthenticationError(SandpiperError):
    type = "authentication_error"
    status = 401


class PermissionDenied(SandpiperError):
    type = "permission_error"
    status = 403


class NotFound(SandpiperError):
    type = "not_found"
    status = 404


class MethodNotAllowed(SandpiperError):
    type = "validation_error"
    status = 405


class Conflict(SandpiperError):
    type = "conflict"
    status = 409


class InProgress(Conflict):
    """The same request is being worked on; its answer can be had a little later."""

    retryable = True


class QuotaExceeded(SandpiperError):
    """`details` name what is used up; after so many seconds there is some of it again."""

    type = "quota_exceeded"
    status = 429
    retryable = True

    def __init__(self, message: str, *, details: list[dict[str, Any]] | None = None, retry_after: int) -> None:
        super().__init__(message, details=details)
        self.retry_after = retry_after


class Unavailable(SandpiperError):
    status = 503
    retryable = True


class GitHubError(SandpiperError):
    """What GitHub answered, in words. `code` is its status, 0 if there was no answer at all."""

    type = "repository_error"
    status = 502

    def __init__(self, message: str, *, code: int, retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable


class Fenced(SandpiperError):
    """The writer is no longer the run's current attempt: it must stop and write nothing more."""

    type = "sandbox_lost"


class RunError(SandpiperError):
    """Why a run ended badly. `type` is one of the names in docs/api.md."""

    def __init__(self, kind: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.type = kind
        self.retryable = retryable
