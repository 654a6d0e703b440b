"""HTTP API → api."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import content_types

from api.app import app
from api.body import require_json
from api.errors import error_body
from sandpiper.errors import SandpiperError

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    response = _respond(event, context)
    logger.info("answered", route=event.get("routeKey"), path=event.get("rawPath"), status=response["statusCode"])
    return response


def _respond(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    try:
        require_json(event)
    except SandpiperError as error:
        headers = {"Content-Type": content_types.APPLICATION_JSON}
        return {"statusCode": error.status, "headers": headers, "body": error_body(error, event)}
    return app.resolve(event, context)
