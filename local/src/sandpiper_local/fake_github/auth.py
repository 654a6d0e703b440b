"""Who is asking: the App by a JWT that it has signed, an installation or a person by a token. And what they may."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import jwt

from sandpiper_local.fake_github.errors import Refusal, not_found
from sandpiper_local.fake_github.hub import covers
from sandpiper_local.fake_github.state import LEVELS

if TYPE_CHECKING:
    from sandpiper_local.fake_github.hub import Hub
    from sandpiper_local.fake_github.state import App, Repository, Token, User

type ActorKind = Literal["anonymous", "app", "installation", "user"]

JWT_MAX_SECONDS = 600
_LEEWAY_SECONDS = 60
_NO_JWT = "A JSON web token could not be decoded"


@dataclass(frozen=True)
class Actor:
    kind: ActorKind
    user: User | None = None
    token: Token | None = None

    @property
    def person(self) -> User:
        if self.user is None:
            raise Refusal(401, "Requires authentication")
        return self.user

    @property
    def is_app(self) -> bool:
        return self.kind in {"app", "installation"}


def actor_of(hub: Hub, credential: str | None) -> Actor:
    if not credential:
        return Actor("anonymous")
    if credential.count(".") == 2:
        return Actor("app", _app(hub, credential).bot)
    token = hub.tokens.get(credential)
    if token is None or (token.expires_at and token.expires_at <= hub.clock.now()):
        raise Refusal(401, "Bad credentials")
    if token.installation:
        _check_installed(hub, token)
    return Actor("installation" if token.installation else "user", token.user, token)


def _check_installed(hub: Hub, token: Token) -> None:
    installation = token.installation
    if installation is None or installation.id not in hub.installations:
        raise Refusal(401, "Bad credentials")
    if installation.suspended_at:
        raise Refusal(403, "This installation has been suspended")


def _app(hub: Hub, credential: str) -> App:
    """Checked as GitHub does, and by the real clock, which is the one that the signer has."""
    app = hub.app
    if app is None:
        raise Refusal(401, _NO_JWT)
    try:
        claims = jwt.decode(
            credential, app.public_key, algorithms=["RS256"],
            options={"require": ["iss", "iat", "exp"]}, leeway=_LEEWAY_SECONDS,
        )  # fmt: skip
    except jwt.ExpiredSignatureError:
        raise Refusal(401, "'Expiration time' claim ('exp') is in the past") from None
    except jwt.ImmatureSignatureError:
        raise Refusal(401, "'Issued at' claim ('iat') must not be in the future") from None
    except jwt.InvalidTokenError:
        raise Refusal(401, _NO_JWT) from None
    if claims["exp"] > time.time() + JWT_MAX_SECONDS:
        raise Refusal(401, "'Expiration time' claim ('exp') is too far in the future")
    if str(claims["iss"]) != str(app.id):
        raise Refusal(401, "'Issuer' claim ('iss') must be the App ID")
    return app


def check_access(actor: Actor, repository: Repository, permission: str, *, by_anyone: bool) -> None:
    """`permission` such as `contents:write`. `by_anyone`: a person who may read may do this too, such as comment.

    Who may not even read is told that there is nothing. Raises Refusal.
    """
    name, _, level = permission.partition(":")
    if not _may(actor, repository, "metadata", "read"):
        raise not_found()
    wanted = "read" if actor.kind == "user" and by_anyone else level
    if not _may(actor, repository, name, level, of_person=wanted):
        raise Refusal(403, _not_accessible(actor))


def _may(
    actor: Actor, repository: Repository, name: str, level: str, *, of_person: str | None = None
) -> bool:  # fmt: skip
    token = actor.token
    if token is None:
        return actor.kind == "anonymous" and level == "read" and not repository.private
    if token.repositories is not None and repository not in token.repositories:
        return False
    if token.permissions is not None and not _allows(token.permissions, name, level):
        return False
    if token.installation is not None:
        return covers(token.installation, repository)
    return LEVELS[repository.permission_of(token.user.login)] >= LEVELS[of_person or level]


def _allows(permissions: dict[str, str], name: str, level: str) -> bool:
    if name == "metadata":
        return True
    return LEVELS[permissions.get(name, "none")] >= LEVELS[level]


def _not_accessible(actor: Actor) -> str:
    if actor.kind == "installation":
        return "Resource not accessible by integration"
    return "Resource not accessible by personal access token"


def narrowed(granted: dict[str, str], asked: dict[str, str] | None) -> dict[str, str]:
    """What a token may: never more than the installation has. Raises Refusal."""
    for name, level in (asked or {}).items():
        if LEVELS[granted.get(name, "none")] < LEVELS.get(level, 9):
            raise Refusal(422, "The permissions requested are not granted to this installation.")
    return dict(granted if asked is None else {"metadata": "read", **asked})


def count_request(hub: Hub, token: Token) -> dict[str, str]:
    """The headers of the primary rate limit. Raises Refusal when it is used up."""
    now = hub.clock.now()
    if token.window_ends is None or token.window_ends <= now:
        token.window_ends, token.used = now + timedelta(hours=1), 0
    spent = token.used >= token.limit
    token.used = min(token.used + 1, token.limit)
    headers = {
        "X-RateLimit-Limit": str(token.limit),
        "X-RateLimit-Remaining": str(token.limit - token.used),
        "X-RateLimit-Used": str(token.used),
        "X-RateLimit-Reset": str(int(token.window_ends.timestamp())),
        "X-RateLimit-Resource": "core",
    }
    if spent:
        raise Refusal(403, f"API rate limit exceeded for {token.user.login}.", headers=headers)
    return headers
