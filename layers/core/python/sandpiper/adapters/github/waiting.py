"""How long GitHub wants to be left alone, and whether to try again at all."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING

import urllib3

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable

_TOO_MANY = frozenset({403, 429})
_REFUSED = frozenset({401, 403})
_SECONDARY = (b"secondary rate limit", b"abuse detection")  # the older name, of Enterprise Servers

type Outcome = urllib3.BaseHTTPResponse | urllib3.exceptions.HTTPError


def wait_before_next(
    answer: Outcome, pause: float, *, may_repeat: bool, may_go_better: Callable[[int], bool]
) -> float | None:
    """None: there is no next try."""
    if not isinstance(answer, urllib3.BaseHTTPResponse):
        return pause if may_repeat else None
    asked = asked_to_wait(answer)
    if asked is not None:
        # Refused before anything was done, so anything may be repeated.
        return asked if asked <= limits.GITHUB_MAX_WAIT_SECONDS else None
    if answer.status in _REFUSED:
        return pause if may_go_better(answer.status) else None
    return pause if answer.status >= 500 and may_repeat else None


def asked_to_wait(answer: urllib3.BaseHTTPResponse) -> float | None:
    """A rate limit says when to come back; any other 403 says no such thing."""
    if answer.status not in _TOO_MANY:
        return None
    if (after := answer.headers.get("Retry-After", "")).isdigit():
        return float(after)
    if answer.headers.get("X-RateLimit-Remaining") == "0":
        reset = answer.headers.get("X-RateLimit-Reset", "")
        return max(0.0, float(reset) - time.time()) if reset.isdigit() else limits.GITHUB_SECONDARY_SECONDS
    said = answer.data.lower()
    is_told = answer.status == HTTPStatus.TOO_MANY_REQUESTS or any(words in said for words in _SECONDARY)
    return limits.GITHUB_SECONDARY_SECONDS if is_told else None
