"""The environment of the authorizer function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Settings:
    jwt_secret_arn: str
    jwks_url: str | None
    issuer: str | None
    audience: str | None

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        return cls(
            jwt_secret_arn=environment["JWT_SECRET_ARN"],
            jwks_url=environment.get("JWKS_URL") or None,
            issuer=environment.get("JWT_ISSUER") or None,
            audience=environment.get("JWT_AUDIENCE") or None,
        )
