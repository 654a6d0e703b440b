"""`.sandpiper.yml`: what a repository says about itself. Read from the base commit only, never from the work."""

from __future__ import annotations

from typing import Any

import yaml
from pydantic import ValidationError, field_validator

from sandpiper.errors import RunError
from sandpiper.models.base import Model

FILE = ".sandpiper.yml"


class Check(Model):
    name: str
    run: str


class Options(Model):
    checks: tuple[Check, ...] = ()
    setup: tuple[str, ...] = ()
    egress: tuple[str, ...] = ()
    instructions: str = ""

    @field_validator("checks", mode="before")
    @classmethod
    def _plain_commands(cls, value: Any) -> Any:
        items = value if isinstance(value, list) else [value]
        return [{"name": item, "run": item} if isinstance(item, str) else item for item in items]

    @field_validator("setup", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value


def parse_options(data: bytes | None) -> Options:
    """Raises RunError that says what is wrong and where."""
    if data is None:
        return Options()
    try:
        raw = yaml.safe_load(data)
        return Options.model_validate(raw or {})
    except yaml.YAMLError as error:
        raise RunError("validation_error", f"{FILE} can't be read: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "its top level"
        raise RunError("validation_error", f"{FILE} is wrong at {where}: {first['msg']}") from error
