"""What every route may ask of the request it serves."""

import re
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Request
from aws_lambda_powertools.event_handler.depends import Depends
from aws_lambda_powertools.event_handler.openapi.params import Header, Path

from api.world import World, world
from sandpiper import limits
from sandpiper.errors import AuthenticationError
from sandpiper.models.identity import Identity

VISIBLE = r"^[\x21-\x7e]+$"
_WAIT = re.compile(r"\s*wait\s*=\s*\"?(\d{1,9})\"?\s*", re.IGNORECASE)


def current_world() -> World:
    return world()


def identity_of(request: Request) -> Identity:
    """Whom the authorizer has let in. Without its word nobody is: the route fails closed."""
    caller = _authorizer_context(request.resolved_event.raw_event)
    if not caller.get("user"):
        raise AuthenticationError("Send a token: Authorization: Bearer <token>.")
    scopes = frozenset((caller.get("scope") or "").split())
    return Identity(user=caller["user"], org=caller.get("org") or None, scopes=scopes)


def request_id_of(request: Request) -> str:
    return request_id(request.resolved_event.raw_event)


def request_id(event: dict[str, Any]) -> str:
    return str(event.get("requestContext", {}).get("requestId", ""))


def seconds_to_wait(prefer: str | None) -> int:
    """`Prefer: wait=N`; other preferences are not ours to know, and it is only a preference."""
    waits = (_WAIT.fullmatch(preference) for preference in re.split("[,;]", prefer or ""))
    return min(next((int(wait[1]) for wait in waits if wait), 0), limits.MAX_WAIT_SECONDS)


def _authorizer_context(event: dict[str, Any]) -> dict[str, Any]:
    authorizer = event.get("requestContext", {}).get("authorizer") or {}
    context: dict[str, Any] = authorizer.get("lambda") or {}
    return context


CurrentWorld = Annotated[World, Depends(current_world)]
Caller = Annotated[Identity, Depends(identity_of)]
RequestId = Annotated[str, Depends(request_id_of)]
RunId = Annotated[str, Path(description="as POST /execute gave it")]
ApprovalId = Annotated[str, Path(description="as `approval.id` of the run has it")]
IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", pattern=VISIBLE, max_length=limits.MAX_IDEMPOTENCY_KEY_CHARS)
]
