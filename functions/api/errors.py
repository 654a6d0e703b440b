"""The one place where exceptions become answers."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response, content_types
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError

from api.requests import request_id
from sandpiper.errors import MethodNotAllowed, NotFound, QuotaExceeded, SandpiperError
from sandpiper.logic.validation import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from api.resolver import Api

logger = Logger()


class ErrorAnswers:
    def __init__(self, app: Api) -> None:
        self._app = app

    def register(self) -> None:
        self._app.exception_handler(SandpiperError)(self._ours)
        self._app.exception_handler(RequestValidationError)(self._invalid)
        self._app.exception_handler(NotFoundError)(self._no_route)
        self._app.exception_handler(Exception)(self._unexpected)

    def _ours(self, error: SandpiperError) -> Response[str]:
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            logger.error("request failed", error_type=error.type, exc_info=error)
        later = {"Retry-After": str(error.retry_after)} if isinstance(error, QuotaExceeded) else {}
        return self._answer(error, later)

    def _invalid(self, error: RequestValidationError) -> Response[str]:
        # The first part says where in the request it is, which is not the caller's name for it.
        return self._answer(refusal([{**found, "loc": found["loc"][1:]} for found in error.errors()]))

    def _no_route(self, _: NotFoundError) -> Response[str]:
        path = self._app.current_event.path
        if methods := self._app.methods_of(path):
            refusal = MethodNotAllowed(f"Use {' or '.join(methods)} on {path}.")
            return self._answer(refusal, {"Allow": ", ".join(methods)})
        return self._answer(NotFound(f"There is nothing at {path}."))

    def _unexpected(self, error: Exception) -> Response[str]:
        logger.error("unexpected error", exc_info=error)
        return self._answer(SandpiperError("Something went wrong on our side. The request id finds it in our logs."))

    def _answer(self, error: SandpiperError, headers: Mapping[str, str] | None = None) -> Response[str]:
        return Response(
            status_code=error.status,
            content_type=content_types.APPLICATION_JSON,
            body=error_body(error, self._app.current_event.raw_event),
            headers={**(headers or {})},
        )


def error_body(error: SandpiperError, event: dict[str, Any]) -> str:
    body: dict[str, Any] = {
        "type": error.type,
        "message": error.message,
        "retryable": error.retryable,
        "request_id": request_id(event),
    }
    if error.details:
        body["details"] = error.details
    return json.dumps({"success": False, "error": body})
