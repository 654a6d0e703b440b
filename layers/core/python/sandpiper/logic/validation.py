"""pydantic's complaints in our words, for whoever wrote the body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper.errors import ValidationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MESSAGES = {
    "missing": "is required",
    "extra_forbidden": "is unknown",
    "string_too_short": "must not be empty",
    "none_required": "must be null",
}
_PREFIXES = ("Value error, ", "Input ", "String ", "List ")  # the field's name stands in front


def refusal(errors: Sequence[Any]) -> ValidationError:
    details = [{"field": _field(error["loc"]), "message": _message(error)} for error in errors]
    return ValidationError(f"{details[0]['field']} {details[0]['message']}.", details=details)


def _field(location: Sequence[str | int]) -> str:
    """The name as the caller wrote it: `params.repo`, not in which of our models it is."""
    names = [str(part) for part in location if not str(part).startswith("<")]
    return ".".join(names) or "body"


def _message(error: Mapping[str, Any]) -> str:
    message = _MESSAGES.get(error["type"]) or str(error["msg"])
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    return "must not be blank" if error["type"] == "string_pattern_mismatch" and r"\S" in message else message
