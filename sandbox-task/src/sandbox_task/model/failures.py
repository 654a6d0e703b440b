"""What a failed request means: try again, say why not, or shorten the conversation. The same for every wire."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from sandbox_task.model.port import Reply, TryFailed, TurnUsage

if TYPE_CHECKING:
    from collections.abc import Mapping

# 424 is Bedrock's word for a model that failed on its side
_RETRIED = frozenset({408, 409, 424, 425, 429})
_TOO_LONG = ("prompt is too long", "input is too long", "too many input tokens", "maximum context length")
# an error in the middle of a stream has a name and no status of its own
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    "validationexception": 400,
    "accessdeniedexception": 403,
    "resourcenotfoundexception": 404,
    "modeltimeoutexception": 408,
    "modelstreamerrorexception": 424,
    "modelerrorexception": 424,
    "throttlingexception": 429,
    "internalserverexception": 500,
    "serviceunavailableexception": 503,
}


def status_of(name: str) -> int:
    return _STATUS.get(name.lower(), 500)


def is_too_long(status: int, said: str) -> bool:
    return status == 413 or (status == 400 and any(words in said.lower() for words in _TOO_LONG))


def too_long(model: str, usage: TurnUsage) -> Reply:
    return Reply(blocks=(), stop="too_long", usage=usage, model=model)


def refused(
    status: int, said: str, model: str, *, retry_after: float | None = None, usage: TurnUsage | None = None
) -> TryFailed:
    """The server answered, and not with a reply."""
    retried = status in _RETRIED or status >= 500
    return TryFailed(
        "model_request_error",
        _in_words(status, said, model, retried=retried),
        retryable=retried,
        retry_after=retry_after,
        usage=usage,
    )


def _in_words(status: int, said: str, model: str, *, retried: bool) -> str:
    if status == 401:
        return f"The model's server refused the key: {said}"
    if status == 403:
        return f"The model's server does not let us use {model!r}: {said}"
    if status == 404:
        return f"The model's server knows no model {model!r}: {said}"
    if retried:
        return f"The model's server is overloaded or failing ({status}): {said}"
    return f"The model's server refused the request ({status}): {said}"


def unreachable(why: str) -> TryFailed:
    return TryFailed("model_request_error", f"The model's server could not be reached: {why}", retryable=True)


def too_late(seconds: float) -> TryFailed:
    return TryFailed("model_request_error", f"The model did not answer within {seconds:g} s.", retryable=True)


def broken(why: str, usage: TurnUsage | None = None) -> TryFailed:
    """What came is dropped: half a reply is worse than none."""
    message = f"The model's answer broke off or can't be read: {why}"
    return TryFailed("model_response_error", message, retryable=True, usage=usage)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from either form that HTTP knows; a server that writes nonsense has said nothing."""
    said = headers.get("retry-after", "")
    try:
        return max(0.0, float(said))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except ValueError:
        return None
