"""GitHub's REST API over urllib3: one place that speaks HTTP, waits when told to, and puts failures into words."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import urllib3

from sandpiper import limits
from sandpiper.errors import GitHubError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_SAFE_TO_REPEAT = frozenset({"GET", "PUT", "PATCH", "DELETE"})
_TOO_MANY = frozenset({403, 429})


class GitHubClient:
    """`token` is asked for every request, so that a long run has always one that is good. Thread-safe."""

    def __init__(self, api_url: str, token: Callable[[], str], *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._url, self._token, self._sleep = api_url.rstrip("/"), token, sleep
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=limits.GITHUB_CONNECT_SECONDS, read=limits.GITHUB_READ_SECONDS),
            retries=False,
        )

    def call(self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None) -> Any:
        """The JSON of the answer (None for an empty one). Raises GitHubError."""
        return _parsed(self._send(method, path, body, query))

    def pages(self, path: str, *, query: Mapping[str, Any] | None = None, limit: int) -> Iterator[Any]:
        """The items of a list, at most `limit`, page after page."""
        page, left = 1, limit
        while left > 0:
            size = min(100, left)
            items = self.call("GET", path, query={**(query or {}), "per_page": size, "page": page})
            yield from items[:left]
            if len(items) < size:
                return
            page, left = page + 1, left - len(items)

    def graphql(self, query: str, variables: Mapping[str, Any]) -> Any:
        """`data` of the answer. Raises GitHubError, also for what GraphQL calls a success with errors."""
        answer = self.call("POST", "/graphql", {"query": query, "variables": dict(variables)})
        if errors := answer.get("errors"):
            raise GitHubError(f"GitHub refused a query: {errors[0].get('message', 'no reason given')}", code=200)
        return answer["data"]

    def tail(self, path: str, *, at_most: int) -> bytes:
        """The last bytes of what GitHub sends us on to, such as a log. The token stays here. Raises GitHubError."""
        answer = self._send("GET", path, None, None)
        if not (place := answer.headers.get("Location")):
            return answer.data[-at_most:]
        kept = b""
        try:
            with self._pool.request("GET", place, preload_content=False) as stored:
                for piece in stored.stream(1 << 16):
                    kept = (kept + piece)[-at_most:]
        except urllib3.exceptions.HTTPError as error:
            raise GitHubError(f"What GET {path} leads to could not be read.", code=0, retryable=True) from error
        if stored.status != 200:
            raise GitHubError(f"What GET {path} leads to answered {stored.status}.", code=stored.status)
        return kept

    def _send(self, method: str, path: str, body: Any, query: Mapping[str, Any] | None) -> urllib3.BaseHTTPResponse:
        for pause in (*limits.GITHUB_PAUSES_SECONDS, None):
            answer = self._try(method, path, body, query)
            if isinstance(answer, urllib3.BaseHTTPResponse) and answer.status < 400:
                return answer
            wait = _wait(answer, method, pause)
            if wait is None:
                raise _error(method, path, answer)
            self._sleep(wait)
        raise AssertionError("the last try raises or returns")

    def _try(
        self, method: str, path: str, body: Any, query: Mapping[str, Any] | None
    ) -> urllib3.BaseHTTPResponse | urllib3.exceptions.HTTPError:
        headers = {
            "Authorization": f"Bearer {self._token()}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "sandpiper",
        }
        try:
            return self._pool.request(
                method, self._place(path), json=body, headers=headers, fields=dict(query) if query else None
            )
        except urllib3.exceptions.HTTPError as error:
            return error

    def _place(self, path: str) -> str:
        """GitHub Enterprise has GraphQL beside its REST API, not below it."""
        root = self._url.removesuffix("/v3") if path == "/graphql" else self._url
        return f"{root}{path}"


def _wait(
    answer: urllib3.BaseHTTPResponse | urllib3.exceptions.HTTPError, method: str, pause: float | None
) -> float | None:
    """How long to wait before the next try; None: there is none."""
    if pause is None:
        return None
    if not isinstance(answer, urllib3.BaseHTTPResponse):
        return pause if method in _SAFE_TO_REPEAT else None
    if answer.status in _TOO_MANY and (asked := _asked_to_wait(answer)) is not None:
        return asked if asked <= limits.GITHUB_MAX_WAIT_SECONDS else None
    if answer.status >= 500:
        return pause if method in _SAFE_TO_REPEAT else None
    return None


def _asked_to_wait(answer: urllib3.BaseHTTPResponse) -> float | None:
    """A rate limit says when to come back; any other 403 says no such thing."""
    if (after := answer.headers.get("Retry-After", "")).isdigit():
        return float(after)
    if answer.headers.get("X-RateLimit-Remaining") == "0":
        return max(0.0, float(answer.headers.get("X-RateLimit-Reset", "0")) - time.time())
    return None


def _parsed(answer: urllib3.BaseHTTPResponse) -> Any:
    return json.loads(answer.data) if answer.data else None


def _error(method: str, path: str, answer: urllib3.BaseHTTPResponse | urllib3.exceptions.HTTPError) -> GitHubError:
    if not isinstance(answer, urllib3.BaseHTTPResponse):
        return GitHubError(f"GitHub did not answer {method} {path}.", code=0, retryable=True)
    limited = answer.status in _TOO_MANY and _asked_to_wait(answer) is not None
    try:
        words = str(json.loads(answer.data).get("message", ""))
    except (ValueError, AttributeError):
        words = ""
    return GitHubError(
        f"GitHub answered {method} {path} with {answer.status}: {words or answer.reason or 'no reason given'}",
        code=answer.status,
        retryable=limited or answer.status >= 500,
    )
