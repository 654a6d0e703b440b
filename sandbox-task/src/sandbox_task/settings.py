"""The sandbox's environment, read once at the edge. What is secret is taken out of it at the same moment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, Json, SecretStr, field_validator, model_validator

from sandbox_task.isolation.egress.hosts import parse_patterns
from sandbox_task.isolation.egress.policy import parse_exceptions
from sandbox_task.model.catalogue import Prices
from sandpiper import limits
from sandpiper.models.base import Model

if TYPE_CHECKING:
    from collections.abc import MutableMapping

Backend = Literal["bwrap", "uid"]
_SECRET_NAMES = ("TASK_TOKEN", "ANTHROPIC_API_KEY")


class Settings(Model):
    run_id: str
    attempt: int
    task_token: SecretStr
    anthropic_api_key: SecretStr = SecretStr("")
    runs_table: str
    events_table: str
    artifacts_bucket: str
    run_secrets_key_id: str
    github_url: str = "https://github.com"
    github_api_url: str = "https://api.github.com"
    github_function: str | None = None  # mints tokens for what was asked for on GitHub
    public_url: str | None = None  # of the console, for links to the run
    anthropic_base_url: str | None = None
    model_provider: Literal["anthropic", "bedrock"] = "anthropic"
    allow_bedrock: bool = False
    fallback_model: str | None = None
    model_prices: Json[dict[str, Prices]] = Field(default_factory=dict)
    aws_region: str = ""
    aws_endpoint_url_bedrock_runtime: str | None = None
    sandpiper_sandbox: Backend | None = None
    sandbox_tools_dir: Path | None = None
    sandbox_work_dir: Path | None = None
    worker_uid: int = 10002
    egress_allowed: tuple[str, ...] = ()
    egress_private: tuple[str, ...] = ()
    egress_registries: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    approval_wait_seconds: int = limits.APPROVAL_WAIT_SECONDS
    commit_author_name: str = "Sandpiper"
    commit_author_email: str = "noreply@sandpiper.invalid"  # nobody's: GitHub would show whose address it is

    @field_validator(
        "anthropic_base_url",
        "github_function",
        "public_url",
        "fallback_model",
        "aws_endpoint_url_bedrock_runtime",
        "sandpiper_sandbox",
        "sandbox_tools_dir",
        "sandbox_work_dir",
        mode="before",
    )
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return value or None

    @field_validator("model_prices", mode="before")
    @classmethod
    def _empty_is_no_prices(cls, value: object) -> object:
        return value or "{}"

    @property
    def uses_bedrock(self) -> bool:
        return self.allow_bedrock or self.model_provider == "bedrock"

    @field_validator("egress_allowed", "egress_private", mode="before")
    @classmethod
    def _comma_separated(cls, value: object) -> object:
        return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value

    @field_validator("egress_registries", mode="before")
    @classmethod
    def _json(cls, value: object) -> object:
        return json.loads(value or "{}") if isinstance(value, str) else value

    @model_validator(mode="after")
    def _hosts_are_hosts(self) -> Self:
        parse_patterns([*self.egress_allowed, *(host for hosts in self.egress_registries.values() for host in hosts)])
        parse_exceptions(self.egress_private)
        return self


def read_settings(environ: MutableMapping[str, str]) -> Settings:
    """Raises pydantic's ValidationError, which names what is missing."""
    values = {name: environ[name.upper()] for name in Settings.model_fields if name.upper() in environ}
    for name in _SECRET_NAMES:
        environ.pop(name, None)
    return Settings.model_validate(values)
