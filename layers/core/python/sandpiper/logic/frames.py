"""What goes over a socket, both ways. Written by hand: the functions that use it must start fast, without pydantic."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandpiper import limits
from sandpiper.errors import BadRequest, ValidationError
from sandpiper.logic.ids import RUN_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandpiper.errors import SandpiperError

_FIELDS = {"subscribe": {"run_id", "after"}, "unsubscribe": {"run_id"}, "ping": set[str]()}


@dataclass(frozen=True)
class Subscribe:
    run_id: str
    after: int = 0


@dataclass(frozen=True)
class Unsubscribe:
    run_id: str


@dataclass(frozen=True)
class Ping:
    pass


type ClientFrame = Subscribe | Unsubscribe | Ping


def parse(text: str | None) -> ClientFrame:
    """Raises BadRequest for what can't be read, ValidationError for what is wrong in it."""
    frame = _object(text or "")
    action = frame.pop("action", None)
    if not isinstance(action, str) or action not in _FIELDS:
        raise _wrong("action", f"must be one of {', '.join(_FIELDS)}")
    for name in frame.keys() - _FIELDS[action]:
        raise _wrong(name[: limits.MAX_NAME_CHARS], "is unknown")
    if action == "ping":
        return Ping()
    run_id = _run_id(frame.get("run_id"))
    return Unsubscribe(run_id) if action == "unsubscribe" else Subscribe(run_id, _after(frame.get("after", 0)))


def encode(frame: Mapping[str, Any]) -> bytes:
    # half characters are no UTF-8, and a client may have sent us one
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def event_frame(event: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "event", "event": event}


def error_frame(error: SandpiperError, request_id: str) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "type": error.type,
        "message": error.message,
        "retryable": error.retryable,
        "request_id": request_id,
    }
    if error.details:
        shown["details"] = error.details
    return {"type": "error", "error": shown}


def _object(text: str) -> dict[str, Any]:
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRequest("A message must be a JSON object.") from error
    if not isinstance(frame, dict):
        raise BadRequest("A message must be a JSON object.")
    return frame


def _run_id(value: object) -> str:
    if not isinstance(value, str) or not RUN_ID.fullmatch(value):
        raise _wrong("run_id", "must be the id of a run")
    return value


def _after(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limits.MAX_SEQ:
        raise _wrong("after", "must be the number of an event, or 0")
    return value


def _wrong(field: str, message: str) -> ValidationError:
    return ValidationError(f"{field} {message}.", details=[{"field": field, "message": message}])
