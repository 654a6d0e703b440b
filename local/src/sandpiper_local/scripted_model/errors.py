"""What the server refuses, in the shape that the API uses."""

from __future__ import annotations

from typing import Any

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


_AWS_TYPES = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
}


class ProtocolError(Exception):
    """The request breaks a rule of the API."""


class Refusal(Exception):
    """An answer in the API's error shape."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


def error_body(status: int, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": _TYPES.get(status, "api_error"), "message": message}}


def aws_error(refusal: Refusal) -> tuple[dict[str, Any], dict[str, str]]:
    """Body and headers, as Bedrock sends them."""
    kind = _AWS_TYPES.get(refusal.status, "ServiceUnavailableException")
    return {"message": str(refusal)}, {"x-amzn-errortype": kind, **refusal.headers}
