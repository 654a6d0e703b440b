"""The environment of the github function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Settings:
    runs_table: str
    events_table: str
    idempotency_table: str
    artifacts_bucket: str
    state_machine_arn: str
    run_secrets_key_id: str
    github_url: str
    github_api_url: str
    app_id: str
    app_key_secret_arn: str
    webhook_secret_arn: str
    public_url: str

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        return cls(
            runs_table=environment["RUNS_TABLE"],
            events_table=environment["EVENTS_TABLE"],
            idempotency_table=environment["IDEMPOTENCY_TABLE"],
            artifacts_bucket=environment["ARTIFACTS_BUCKET"],
            state_machine_arn=environment["STATE_MACHINE_ARN"],
            run_secrets_key_id=environment["RUN_SECRETS_KEY_ID"],
            github_url=environment["GITHUB_URL"],
            github_api_url=environment["GITHUB_API_URL"],
            app_id=environment.get("GITHUB_APP_ID", ""),
            app_key_secret_arn=environment["GITHUB_APP_KEY_SECRET_ARN"],
            webhook_secret_arn=environment["GITHUB_WEBHOOK_SECRET_ARN"],
            public_url=environment.get("PUBLIC_URL", ""),
        )
