"""What goes over a socket, both ways. Written by hand: the functions that use it must start fast, without pydantic."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from sandpiper import limits
from sandpiper.errors import BadRequest, ValidationError
from sandpiper.logic.ids import RUN_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandpiper.errors import SandpiperError

type ControlAction = Literal["cancel", "pause", "resume", "message", "approve", "reject", "budget"]

_CONTROLS = ("cancel", "pause", "resume", "message", "approve", "reject", "budget")
_FIELDS = {
    "subscribe": {"run_id", "after", "runs"},
    "unsubscribe": {"run_id", "runs"},
    "ping": set[str](),
    "cancel": {"run_id", "key"},
    "resume": {"run_id", "key"},
}
_ACTIONS = ("subscribe", "unsubscribe", "ping", *_CONTROLS)
_KEY = re.compile(rf"[\x21-\x7e]{{1,{limits.MAX_IDEMPOTENCY_KEY_CHARS}}}")
DELTA = "agent_delta"


@dataclass(frozen=True)
class Subscribe:
    """To one run or, without `run_id`, to all of one's own."""

    run_id: str | None
    after: int = 0


@dataclass(frozen=True)
class Unsubscribe:
    run_id: str | None


@dataclass(frozen=True)
class Ping:
    pass


@dataclass(frozen=True)
class Control:
    """What is asked of a run. `body` is what the route of the same name takes, not looked at yet."""

    action: ControlAction
    run_id: str
    key: str | None = None
    body: Mapping[str, Any] = field(default_factory=dict)


type ClientFrame = Subscribe | Unsubscribe | Ping | Control


def parse(text: str | None) -> ClientFrame:
    """Raises BadRequest for what can't be read, ValidationError for what is wrong in it."""
    frame = _object(text or "")
    action = frame.pop("action", None)
    if not isinstance(action, str) or action not in _ACTIONS:
        raise _wrong("action", f"must be one of {', '.join(_ACTIONS)}")
    for name in frame.keys() - _FIELDS.get(action, frame.keys()):
        raise _wrong(name[: limits.MAX_NAME_CHARS], "is unknown")
    if action == "ping":
        return Ping()
    if action in _CONTROLS:
        key, run_id = _key(frame.pop("key", None)), _run_id(frame.pop("run_id", None))
        return Control(cast("ControlAction", action), run_id, key, frame)
    followed = _followed(frame)
    return Unsubscribe(followed) if action == "unsubscribe" else Subscribe(followed, _after(frame.get("after", 0)))


def key_in(text: str | None) -> str | None:
    """The key of a message in which something may be wrong, so that its sender can tell which one it was."""
    try:
        return _key(_object(text or "").get("key"))
    except (BadRequest, ValidationError):
        return None


def encode(frame: Mapping[str, Any]) -> bytes:
    # half characters are no UTF-8, and a client may have sent us one
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def event_frame(event: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "event", "event": event}


def delta_frame(told: Mapping[str, Any]) -> dict[str, Any]:
    """Words of the model while it says them: no event, has no number, and is gone when it was shown."""
    return {
        "type": DELTA,
        "run_id": told["run_id"],
        "attempt": told["attempt"],
        "ephemeral": True,
        **told["data"],
    }


def error_frame(error: SandpiperError, request_id: str, key: str | None = None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "type": error.type,
        "message": error.message,
        "retryable": error.retryable,
        "request_id": request_id,
    }
    if error.details:
        shown["details"] = error.details
    return {"type": "error", "error": shown} | ({"key": key} if key else {})


def _object(text: str) -> dict[str, Any]:
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRequest("A message must be a JSON object.") from error
    if not isinstance(frame, dict):
        raise BadRequest("A message must be a JSON object.")
    return frame


def _followed(frame: Mapping[str, Any]) -> str | None:
    if "runs" not in frame:
        return _run_id(frame.get("run_id"))
    for name in frame.keys() & {"run_id", "after"}:
        raise _wrong(name, 'has no meaning with runs: "all"')
    if frame["runs"] != "all":
        raise _wrong("runs", 'must be "all"')
    return None


def _run_id(value: object) -> str:
    if not isinstance(value, str) or not RUN_ID.fullmatch(value):
        raise _wrong("run_id", "must be the id of a run")
    return value


def _key(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _KEY.fullmatch(value):
        raise _wrong("key", f"must be 1 to {limits.MAX_IDEMPOTENCY_KEY_CHARS} visible characters")
    return value


def _after(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limits.MAX_SEQ:
        raise _wrong("after", "must be the number of an event, or 0")
    return value


def _wrong(field_: str, message: str) -> ValidationError:
    return ValidationError(f"{field_} {message}.", details=[{"field": field_, "message": message}])
