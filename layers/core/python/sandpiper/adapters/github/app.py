"""The GitHub App: its JWT (RS256), and installation tokens for one repository with no more rights than asked for."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from sandpiper import limits
from sandpiper.adapters.github.client import GitHubClient
from sandpiper.adapters.github.tokens import is_new
from sandpiper.errors import GitHubError
from sandpiper.logic.github.permissions import TALK
from sandpiper.logic.github.places import place_name
from sandpiper.models.github import Author, RepositoryToken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from sandpiper.logic.github.permissions import Permissions
    from sandpiper.logic.github.places import Place
    from sandpiper.ports import Clock

_SPARE = timedelta(seconds=limits.GITHUB_TOKEN_SPARE_SECONDS)

type _Kind = tuple[int, str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class _Kept:
    token: RepositoryToken
    since: datetime


class GitHubApp:
    """`read_key` is asked when a token is minted, so that a changed key is taken up without a deployment."""

    def __init__(
        self,
        *,
        api_url: str,
        app_id: str,
        read_key: Callable[[], str],
        clock: Clock,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._api_url, self._app_id, self._read_key = api_url, app_id, read_key
        self._clock, self._sleep = clock, sleep
        self._known: dict[_Kind, _Kept] = {}
        self._minting = threading.Lock()
        self._author: Author | None = None
        self.client = GitHubClient(api_url, self._jwt, sleep=sleep)  # as the App itself

    def token(self, place: Place, permissions: Permissions) -> RepositoryToken:
        """One that is good for a while yet. Raises GitHubError."""
        kind = _kind(place, permissions)
        with self._minting:
            known = self._known.get(kind)
            if known is None or known.token.expires_at - self._clock.now() <= _SPARE:
                known = self._known[kind] = _Kept(self._mint(place, permissions), self._clock.now())
            return known.token

    def client_for(self, place: Place, permissions: Permissions) -> GitHubClient:
        return GitHubClient(
            self._api_url,
            lambda: self.token(place, permissions).token,
            sleep=self._sleep,
            may_go_better=partial(self._may_go_better, _kind(place, permissions)),
        )

    def _may_go_better(self, kind: _Kind, status: int) -> bool:
        """A new token is not known everywhere at once; one that is known no more gives way to another."""
        with self._minting:
            known = self._known.get(kind)
            if known is None or is_new(known.since, self._clock):
                return True
            if status != HTTPStatus.UNAUTHORIZED:
                return False
            del self._known[kind]
            return True

    def author(self, place: Place) -> Author | None:
        """By the address that GitHub knows its account by. None: it does not say. Raises GitHubError if it may yet."""
        if self._author is None:
            try:
                slug = self.client.call("GET", "/app")["slug"]
                bot = self.client_for(place, TALK).call("GET", f"/users/{quote(f'{slug}[bot]')}")
            except GitHubError as error:
                if error.retryable:
                    raise
                return None
            self._author = _author(bot)
        return self._author

    def deliveries(self, limit: int) -> Iterator[Any]:
        """The last webhooks that GitHub has sent; none where there is no App."""
        return self.client.pages("/app/hook/deliveries", limit=limit) if self._app_id else iter(())

    def redeliver(self, delivery_id: int) -> None:
        self.client.call("POST", f"/app/hook/deliveries/{delivery_id}/attempts")

    def _mint(self, place: Place, permissions: Permissions) -> RepositoryToken:
        """By its number: under its name there may be another repository by now."""
        name = place.repository.partition("/")[2]
        chosen = {"repository_ids": [place.repository_id]} if place.repository_id else {"repositories": [name]}
        path = f"/app/installations/{place.installation_id}/access_tokens"
        answer = self.client.call("POST", path, {**chosen, "permissions": dict(permissions)}, repeatable=True)
        return RepositoryToken(token=answer["token"], expires_at=answer["expires_at"])

    def _jwt(self) -> str:
        import jwt  # noqa: PLC0415 - with its cryptography half the start-up time: who mints nothing pays nothing

        if not self._app_id:
            raise GitHubError("No GitHub App is configured: see docs/github-app.md.", code=0)
        now = int(self._clock.now().timestamp())
        begin, end = now - limits.GITHUB_CLOCK_DRIFT_SECONDS, now + limits.GITHUB_JWT_SECONDS
        claims = {"iat": begin, "exp": end, "iss": self._app_id}
        try:
            # Where a variable holds the key, its lines are often written as `\\n`.
            return jwt.encode(claims, self._read_key().replace("\\n", "\n"), algorithm="RS256")
        except (ValueError, TypeError, jwt.PyJWTError) as error:
            raise GitHubError(
                "The GitHub App's private key can't be read: put the PEM into its secret.", code=0
            ) from error


def _kind(place: Place, permissions: Permissions) -> _Kind:
    return place.installation_id, place_name(place), tuple(sorted(permissions.items()))


def _author(bot: Mapping[str, Any]) -> Author:
    host = urlsplit(bot["html_url"]).hostname
    return Author(name=bot["login"], email=f"{bot['id']}+{bot['login']}@users.noreply.{host}")
