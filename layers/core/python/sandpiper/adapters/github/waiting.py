"""How long GitHub wants to be left alone, and whether to try again at all."""

from __future__ import annotations

import time

import urllib3

from sandpiper import limits

_TOO_MANY = frozenset({403, 429})
_SECONDARY_SECONDS = 60.0  # what GitHub asks for where it says no number

type Outcome = urllib3.BaseHTTPResponse | urllib3.exceptions.HTTPError


def wait_before_next(answer: Outcome, pause: float, *, may_repeat: bool) -> float | None:
    """None: there is no next try."""
    if not isinstance(answer, urllib3.BaseHTTPResponse):
        return pause if may_repeat else None
    asked = asked_to_wait(answer)
    if asked is not None:
        # Refused before anything was done, so anything may be repeated.
        return asked if asked <= limits.GITHUB_MAX_WAIT_SECONDS else None
    return pause if answer.status >= 500 and may_repeat else None


def asked_to_wait(answer: urllib3.BaseHTTPResponse) -> float | None:
    """A rate limit says when to come back; any other 403 says no such thing."""
    if answer.status not in _TOO_MANY:
        return None
    if (after := answer.headers.get("Retry-After", "")).isdigit():
        return float(after)
    if answer.headers.get("X-RateLimit-Remaining") == "0":
        reset = answer.headers.get("X-RateLimit-Reset", "")
        return max(0.0, float(reset) - time.time()) if reset.isdigit() else _SECONDARY_SECONDS
    return _SECONDARY_SECONDS if b"secondary rate limit" in answer.data.lower() else None
