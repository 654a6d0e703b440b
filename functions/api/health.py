"""What /health says: each check asks the thing itself, at most once in a few seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger

from sandpiper.models.responses import HealthChecks

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient

    from api.settings import Settings

# /health is open to everybody: it must cost no more than this, however often it is asked.
REMEMBERED_SECONDS = 5.0
_ANTHROPIC = "https://api.anthropic.com"
_PLACEHOLDERS = frozenset({"", "replace-me", "changeme", "change-me", "placeholder", "set-me", "unset"})

logger = Logger()


@dataclass
class Health:
    database: Callable[[], object]
    storage: Callable[[], object]
    model: Callable[[], bool]
    github_url: str
    now: Callable[[], float] = time.monotonic
    _known: tuple[float, HealthChecks] | None = field(default=None, init=False)

    def checks(self) -> HealthChecks:
        if self._known is None or self.now() - self._known[0] >= REMEMBERED_SECONDS:
            self._known = (self.now(), self._look())
        return self._known[1]

    def _look(self) -> HealthChecks:
        return HealthChecks(
            database=_answers("database", self.database),
            storage=_answers("storage", self.storage),
            model=_answers("model", self.model),
            github="configured" if self.github_url else "unconfigured",
        )


def is_healthy(checks: HealthChecks) -> bool:
    return checks.database and checks.storage and checks.model


def health_of(
    settings: Settings, dynamodb: DynamoDBClient, s3: S3Client, secretsmanager: SecretsManagerClient
) -> Health:
    def read_a_row() -> None:
        dynamodb.get_item(TableName=settings.runs_table, Key={"pk": {"S": "HEALTH"}, "sk": {"S": "HEALTH"}})

    def model_is_set_up() -> bool:
        # Bedrock is used by the role of the sandbox, and a server of one's own may want any key or none
        if settings.model_provider == "bedrock" or not settings.anthropic_base_url.startswith(_ANTHROPIC):
            return True
        secret = secretsmanager.get_secret_value(SecretId=settings.model_key_secret_arn)
        return secret.get("SecretString", "").strip().lower() not in _PLACEHOLDERS

    return Health(
        database=read_a_row,
        storage=lambda: s3.head_bucket(Bucket=settings.artifacts_bucket),
        model=model_is_set_up,
        github_url=settings.github_url,
    )


def _answers(name: str, check: Callable[[], object]) -> bool:
    """Anything that goes wrong is what the check is there to find; only a check that says no is no answer."""
    try:
        return check() is not False
    except Exception:
        logger.exception("health check failed", check=name)
        return False
