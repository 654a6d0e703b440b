"""JSON Web Tokens: who is asking, proven by a signature.

Which algorithm is right is our configuration and never the token's own word, so `none` and an HS256 token signed
with a public key fail like any other forgery.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sandpiper import limits
from sandpiper.errors import AuthenticationError

if TYPE_CHECKING:
    from collections.abc import Mapping

LEEWAY_SECONDS = 30
_BEARER = re.compile(r"Bearer +([A-Za-z0-9_.=-]+) *", re.IGNORECASE)


class KeySource(Protocol):
    """Where the key is that a token must be signed with."""

    @property
    def algorithm(self) -> Literal["HS256", "RS256"]: ...

    def key_for(self, token: str) -> Any:
        """Raises AuthenticationError for a token that names a key we do not know."""


@dataclass(frozen=True)
class TokenRules:
    issuer: str | None = None
    audience: str | None = None


def bearer_token(header: str | None) -> str:
    match = _BEARER.fullmatch(header or "")
    if match is None:
        raise AuthenticationError("Send a token: Authorization: Bearer <token>.")
    return match[1]


def verify(token: str, keys: KeySource, rules: TokenRules) -> dict[str, str]:
    """`{user, org, scope}` of a good token. Raises AuthenticationError."""
    # PyJWT brings `cryptography`, which would be most of what the authorizer imports before its first request.
    import jwt  # noqa: PLC0415

    try:
        claims = jwt.decode(
            token,
            keys.key_for(token),
            algorithms=[keys.algorithm],
            issuer=rules.issuer,
            audience=rules.audience,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "sub"], "verify_aud": rules.audience is not None},
        )
    except jwt.ExpiredSignatureError as error:
        raise AuthenticationError("The token has expired.") from error
    except jwt.InvalidTokenError as error:
        raise AuthenticationError("The token is not valid.") from error
    return _identity(claims)


def _identity(claims: Mapping[str, Any]) -> dict[str, str]:
    user, org, scope = claims["sub"], claims.get("org") or "", claims.get("scope") or ""
    if not (isinstance(user, str) and user.strip() and isinstance(org, str)):
        raise AuthenticationError("The token names no user.")
    if max(len(user), len(org)) > limits.MAX_USER_CHARS:
        raise AuthenticationError(f"The token's user or organization has more than {limits.MAX_USER_CHARS} characters.")
    return {"user": user, "org": org, "scope": scope if isinstance(scope, str) else ""}
