"""`.sandpiper.yml`: what a repository says about itself. Read from the base commit only, never from the work."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError, field_validator

from sandbox_task.isolation.egress.hosts import parse_patterns
from sandpiper import limits
from sandpiper.errors import RunError
from sandpiper.models.base import Model
from sandpiper.models.spec import GateMode

FILE = ".sandpiper.yml"


class Check(Model):
    """One command that decides about the work. `report`: a JUnit XML that it writes, or a pattern for several."""

    name: str = Field(min_length=1)
    run: str = Field(min_length=1)
    timeout_seconds: int = Field(default=limits.CHECK_SECONDS, ge=1, le=limits.MAX_CHECK_SECONDS)
    report: str | None = None

    @field_validator("report")
    @classmethod
    def _inside(cls, value: str | None) -> str | None:
        if value is not None and (value.startswith("/") or ".." in PurePosixPath(value).parts):
            raise ValueError("a path inside the repository is wanted")
        return value


class Options(Model):
    checks: tuple[Check, ...] = Field(default=(), max_length=limits.MAX_CHECKS)
    gate: GateMode | None = None
    setup: tuple[str, ...] = ()
    egress: tuple[str, ...] = Field(default=(), max_length=limits.MAX_LIST_ITEMS)
    instructions: str = ""
    review: Literal["comment", "request_changes"] = "comment"
    follow_ci: bool = False

    @field_validator("checks", mode="before")
    @classmethod
    def _plain_commands(cls, value: Any) -> Any:
        items = value if isinstance(value, list) else [] if value is None else [value]
        return [{"name": item, "run": item} if isinstance(item, str) else _named(item) for item in items]

    @field_validator("setup", "egress", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("egress")
    @classmethod
    def _hosts_are_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        parse_patterns(value)
        return value


def _named(item: Any) -> Any:
    return {"name": item["run"], **item} if isinstance(item, dict) and "run" in item else item


def parse_options(data: bytes | None) -> Options:
    """Raises RunError that says what is wrong and where."""
    if data is None:
        return Options()
    try:
        raw = yaml.safe_load(data)
        return Options.model_validate(raw or {})
    except yaml.YAMLError as error:
        words = " ".join(str(error).replace(' in "<byte string>",', " at").split())
        raise RunError("validation_error", f"{FILE} can't be read: {words}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "its top level"
        raise RunError("validation_error", f"{FILE} is wrong at {where}: {first['msg']}") from error
