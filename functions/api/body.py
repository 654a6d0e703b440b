"""Bodies before they are validated: JSON, an object, and of a size we take."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from sandpiper import limits
from sandpiper.errors import BadRequest, SandpiperError, ValidationError


def read_json_object(text: str) -> dict[str, Any]:
    """What Powertools parses bodies with. Raises ValidationError, BadRequest."""
    if len(text) > limits.MAX_BODY_BYTES or len(text.encode("utf-8", "replace")) > limits.MAX_BODY_BYTES:
        raise _about_body(ValidationError, f"must be at most {limits.MAX_BODY_BYTES // 1024} KB")
    try:
        body = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _about_body(BadRequest, "is not valid JSON") from error
    if not isinstance(body, dict):
        raise _about_body(ValidationError, "must be a JSON object")
    return body


def require_json(event: dict[str, Any]) -> None:
    """Refuses other types of content, and takes the header away: Powertools would read it by rules of its own.

    It would parse a form, make a puzzling complaint of what `curl -d` sends by default, and fail on a type in capitals
    or on that of an empty body, which says nothing.
    """
    content_type = event.get("headers", {}).pop("content-type", "application/json")
    if event.get("body") and content_type.partition(";")[0].strip().lower() != "application/json":
        message = "must be application/json"
        raise BadRequest(f"Content-Type {message}.", details=[{"field": "content-type", "message": message}])


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _about_body(kind: type[SandpiperError], message: str) -> SandpiperError:
    return kind(f"The body {message}.", details=[{"field": "body", "message": message}])
