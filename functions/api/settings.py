"""The environment of the api function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.quota_settings import quota_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandpiper.models.quota import Quota


@dataclass(frozen=True)
class Settings:
    runs_table: str
    events_table: str
    connections_table: str
    idempotency_table: str
    artifacts_bucket: str
    state_machine_arn: str
    run_secrets_key_id: str
    model_key_secret_arn: str
    anthropic_base_url: str
    model_provider: str
    github_url: str
    github_api_url: str
    allowed_repo_urls: tuple[str, ...]
    websocket_url: str
    version: str
    quota: Quota  # of a user, by default

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        return cls(
            runs_table=environment["RUNS_TABLE"],
            events_table=environment["EVENTS_TABLE"],
            connections_table=environment["CONNECTIONS_TABLE"],
            idempotency_table=environment["IDEMPOTENCY_TABLE"],
            artifacts_bucket=environment["ARTIFACTS_BUCKET"],
            state_machine_arn=environment["STATE_MACHINE_ARN"],
            run_secrets_key_id=environment["RUN_SECRETS_KEY_ID"],
            model_key_secret_arn=environment["MODEL_KEY_SECRET_ARN"],
            anthropic_base_url=environment["ANTHROPIC_BASE_URL"],
            model_provider=environment["MODEL_PROVIDER"],
            github_url=environment["GITHUB_URL"],
            github_api_url=environment["GITHUB_API_URL"],
            allowed_repo_urls=tuple(filter(None, map(str.strip, environment.get("ALLOWED_REPO_URLS", "").split(",")))),
            websocket_url=environment["WEBSOCKET_URL"],
            version=environment["VERSION"],
            quota=quota_of(environment),
        )
