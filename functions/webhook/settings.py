"""The environment of the webhook function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Settings:
    webhook_secret_arn: str
    github_function: str
    trigger_label: str
    assignee: str

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        return cls(
            webhook_secret_arn=environment["GITHUB_WEBHOOK_SECRET_ARN"],
            github_function=environment["GITHUB_FUNCTION"],
            trigger_label=environment.get("GITHUB_TRIGGER_LABEL", ""),
            assignee=environment.get("GITHUB_ASSIGNEE", ""),
        )
