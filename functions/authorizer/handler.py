"""HTTP API → authorizer (REQUEST, payload 2.0, simple responses)."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from authorizer.keys import PublishedKeys, SharedSecret
from authorizer.settings import Settings
from sandpiper.adapters.aws import client
from sandpiper.errors import AuthenticationError
from sandpiper.logic.tokens import TokenRules, bearer_token, verify
from shared.json_logs import json_logger

if TYPE_CHECKING:
    from sandpiper.logic.tokens import KeySource

logger = json_logger("authorizer")


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    keys, rules = policy()
    try:
        identity = verify(bearer_token(event.get("headers", {}).get("authorization")), keys, rules)
    except AuthenticationError as refusal:
        logger.info("refused", extra={"reason": refusal.message, "cause": str(refusal.__cause__ or "")})
        return {"isAuthorized": False}
    logger.info("let in", extra={"user": identity["user"]})
    return {"isAuthorized": True, "context": identity}


@functools.cache
def policy() -> tuple[KeySource, TokenRules]:
    settings = Settings.read(os.environ)
    rules = TokenRules(issuer=settings.issuer, audience=settings.audience)
    if settings.jwks_url:
        return PublishedKeys(settings.jwks_url), rules
    return SharedSecret(functools.partial(_read_secret, settings.jwt_secret_arn)), rules


def _read_secret(arn: str) -> str:
    return client("secretsmanager").get_secret_value(SecretId=arn)["SecretString"]
