"""The HTTP application: Powertools' resolver, and the methods that a path knows."""

from __future__ import annotations

from http import HTTPStatus

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from api.body import read_json_object


def new_router() -> APIGatewayHttpRouter:
    return APIGatewayHttpRouter()  # type: ignore[no-untyped-call]  # Powertools leaves it without types


class Api(APIGatewayHttpResolver):
    def __init__(self) -> None:
        super().__init__(
            enable_validation=True,
            # Without it, an answer of ours that breaks its own schema would be blamed on the caller.
            response_validation_error_http_code=HTTPStatus.INTERNAL_SERVER_ERROR,
            json_body_deserializer=read_json_object,
        )

    def methods_of(self, path: str) -> list[str]:
        routes = self._static_routes + self._dynamic_routes
        return sorted({route.method for route in routes if route.rule.match(path)})
