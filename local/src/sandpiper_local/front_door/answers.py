"""Errors that the front door gives itself, in the one shape of the API."""

from __future__ import annotations

import json
import uuid
from typing import Any

from aiohttp import web

_TYPES = {
    400: "validation_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found",
    405: "not_found",
    413: "validation_error",
    422: "validation_error",
    429: "quota_exceeded",
}
_RETRYABLE = frozenset({429, 502, 503, 504})


def error_response(status: int, message: str, *, details: list[dict[str, str]] | None = None) -> web.Response:
    error: dict[str, Any] = {
        "type": _TYPES.get(status, "internal_error"),
        "message": message,
        "retryable": status in _RETRYABLE,
        "request_id": str(uuid.uuid4()),
    }
    if details:
        error["details"] = details
    return web.json_response({"success": False, "error": error}, status=status)


def gateway_message(status: int, body: bytes) -> str | None:
    """What API Gateway says when it refuses a request before a function sees it: `{"message": …}` and nothing else."""
    try:
        answer = json.loads(body)
    except ValueError:
        return None
    if status < 400 or not isinstance(answer, dict) or {key.lower() for key in answer} != {"message"}:
        return None
    return str(next(iter(answer.values())))
