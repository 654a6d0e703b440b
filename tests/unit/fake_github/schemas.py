"""GitHub's own description of its answers and events, as `scripts/github_schemas.py` has taken it."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator

_SCHEMAS: dict[str, Any] = json.loads(Path(__file__).with_name("schemas.json").read_text(encoding="utf-8"))


def described_operations() -> set[str]:
    return set(_SCHEMAS["answers"])


def complaints_about_answer(operation: str, status: int, body: Any) -> list[str]:
    """What GitHub would never have answered."""
    answers = _SCHEMAS["answers"][operation]
    if str(status) not in answers:
        return [f"{operation}: GitHub does not answer {status}"]
    if answers[str(status)] is None or isinstance(body, str):
        return []
    return _complaints(f"{operation} {status}", _answer_validator(operation, str(status)), body)


def complaints_about_event(event: str, payload: Any) -> list[str]:
    name = f"{event}.{payload.get('action', 'event')}"
    if name not in _SCHEMAS["events"]:
        return [f"{name}: no schema was taken for it"]
    return _complaints(name, _event_validator(name), payload)


def _complaints(name: str, validator: Draft7Validator, document: Any) -> list[str]:
    return [f"{name}: {error.json_path}: {error.message[:300]}" for error in validator.iter_errors(document)]


@functools.cache
def _answer_validator(operation: str, status: str) -> Draft7Validator:
    return _validator(_SCHEMAS["answers"][operation][status])


@functools.cache
def _event_validator(name: str) -> Draft7Validator:
    return _validator(_SCHEMAS["events"][name])


def _validator(schema: Any) -> Draft7Validator:
    shared = {name: _SCHEMAS[name] for name in ("components", "definitions")}
    return Draft7Validator({"allOf": [schema], **shared})
