"""The keys that tokens are checked with: the stack's own secret, or those that an identity provider publishes."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any, Final

from sandpiper.errors import AuthenticationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from jwt import PyJWKClient

REMEMBERED_SECONDS: Final = 300
FETCH_SECONDS: Final = 5


class SharedSecret:
    """HS256. Read again every few minutes, so that a changed secret is taken up without a deployment."""

    algorithm: Final = "HS256"

    def __init__(self, read: Callable[[], str], now: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._now = now
        self._known: tuple[float, str] | None = None

    def key_for(self, token: str) -> str:  # noqa: ARG002 - one key signs all tokens
        if self._known is None or self._now() - self._known[0] >= REMEMBERED_SECONDS:
            self._known = (self._now(), self._read())
        return self._known[1]


class PublishedKeys:
    """RS256, with the keys at a JWKS URL."""

    algorithm: Final = "RS256"

    def __init__(self, url: str) -> None:
        self._url = url

    def key_for(self, token: str) -> Any:
        from jwt import PyJWKClientConnectionError, PyJWKClientError  # noqa: PLC0415 - see logic/tokens.py

        try:
            return self._client.get_signing_key_from_jwt(token).key
        except PyJWKClientConnectionError:
            raise
        except PyJWKClientError as error:
            raise AuthenticationError("The token is signed with an unknown key.") from error

    @functools.cached_property
    def _client(self) -> PyJWKClient:
        from jwt import PyJWKClient  # noqa: PLC0415 - see logic/tokens.py

        return PyJWKClient(self._url, lifespan=REMEMBERED_SECONDS, timeout=FETCH_SECONDS)
