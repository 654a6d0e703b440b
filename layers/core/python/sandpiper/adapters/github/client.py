"""GitHub's REST API over urllib3: one place that speaks HTTP, waits when told to, and puts failures into words."""

from __future__ import annotations

import json
import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import urllib3

from sandpiper import limits
from sandpiper.adapters.github.waiting import asked_to_wait, wait_before_next
from sandpiper.errors import GitHubError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sandpiper.adapters.github.waiting import Outcome

_SAFE_TO_REPEAT = frozenset({"GET", "PUT", "PATCH", "DELETE"})
_MOVED = frozenset({301, 302, 307, 308})
_NEXT = re.compile(r'<([^>]*)>; rel="next"')


class GitHubClient:
    """`token` is asked for every request, so that a long run has always one that is good. Thread-safe.

    `may_go_better` is asked when the token was refused (401, 403): whether it is worth another try.
    """

    def __init__(
        self,
        api_url: str,
        token: Callable[[], str],
        *,
        sleep: Callable[[float], None] = time.sleep,
        may_go_better: Callable[[int], bool] = lambda _status: False,
    ) -> None:
        self._url, self._token, self._sleep = api_url.rstrip("/"), token, sleep
        self._may_go_better = may_go_better
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=limits.GITHUB_CONNECT_SECONDS, read=limits.GITHUB_READ_SECONDS),
            retries=False,
        )

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        repeatable: bool = False,
    ) -> Any:
        """The JSON of the answer (None for an empty one). `repeatable`: a POST that may be sent twice.

        Raises GitHubError.
        """
        return _parsed(method, path, self._send(method, path, body, query, repeatable=repeatable))

    def pages(
        self, path: str, *, query: Mapping[str, Any] | None = None, key: str | None = None, limit: int
    ) -> Iterator[Any]:
        """The items of a list, at most `limit`, as each page names the next: one that is not full need not be the last.

        `key`: the name under which they stand in an object.
        """
        left, asked = limit, {**(query or {}), "per_page": min(limits.GITHUB_PAGE, limit)}
        while asked and left > 0:
            answer = self._send("GET", path, None, asked)
            found = _parsed("GET", path, answer)
            items = found if key is None else found[key]
            yield from items[:left]
            left, asked = left - len(items), _next(answer)

    def graphql(self, query: str, variables: Mapping[str, Any]) -> Any:
        """`data` of the answer to what may be asked twice. Raises GitHubError, also for a success with errors."""
        answer = self.call("POST", "/graphql", {"query": query, "variables": dict(variables)}, repeatable=True)
        if errors := answer.get("errors"):
            complaint = f"GitHub refused a query: {errors[0].get('message', 'no reason given')}"
            raise GitHubError(complaint, code=200, retryable=errors[0].get("type") == "RATE_LIMITED")
        return answer["data"]

    def tail(self, path: str, *, at_most: int) -> bytes:
        """The last bytes of what GitHub sends us on to, such as a log. The token stays here. Raises GitHubError."""
        answer = self._send("GET", path, None, None, follow=False)
        if not (place := answer.headers.get("Location")):
            return answer.data[-at_most:]
        kept = b""
        try:
            with self._pool.request("GET", place, preload_content=False) as stored:
                for piece in stored.stream(1 << 16):
                    kept = (kept + piece)[-at_most:]
        except urllib3.exceptions.HTTPError as error:
            raise GitHubError(f"What GET {path} leads to could not be read.", code=0, retryable=True) from error
        if stored.status != HTTPStatus.OK:
            raise GitHubError(f"What GET {path} leads to answered {stored.status}.", code=stored.status)
        return kept

    def _send(
        self,
        method: str,
        path: str,
        body: Any,
        query: Mapping[str, Any] | None,
        *,
        repeatable: bool = False,
        follow: bool = True,
    ) -> urllib3.BaseHTTPResponse:
        url = f"{self._place(path)}{'?' + urlencode(query) if query else ''}"
        may_repeat = repeatable or method in _SAFE_TO_REPEAT
        for pause in (*limits.GITHUB_PAUSES_SECONDS, None):
            answer = self._try(method, url, body, follow=follow)
            if isinstance(answer, urllib3.BaseHTTPResponse) and _is_good(answer, follow=follow):
                return answer
            if pause is None or (wait := self._wait(answer, pause, may_repeat=may_repeat)) is None:
                raise _error(method, path, answer)
            self._sleep(wait)
        raise AssertionError("the last try raises or returns")

    def _wait(self, answer: Outcome, pause: float, *, may_repeat: bool) -> float | None:
        return wait_before_next(answer, pause, may_repeat=may_repeat, may_go_better=self._may_go_better)

    def _place(self, path: str) -> str:
        """GitHub Enterprise has GraphQL beside its REST API, not below it."""
        root = self._url.removesuffix("/v3") if path == "/graphql" else self._url
        return f"{root}{path}"

    def _try(self, method: str, url: str, body: Any, *, follow: bool) -> Outcome:
        """Follows one move: a renamed repository has another address, and logs are kept elsewhere."""
        try:
            answer = self._request(method, url, body)
            if answer.status not in _MOVED or not follow:
                return answer
            target = urljoin(url, answer.headers.get("Location", ""))
            if method != "GET" and not self._is_ours(target):
                return answer
            return self._request(method, target, body)
        except urllib3.exceptions.HTTPError as error:
            return error

    def _request(self, method: str, url: str, body: Any) -> urllib3.BaseHTTPResponse:
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "sandpiper",
        }
        if self._is_ours(url):
            headers["Authorization"] = f"Bearer {self._token()}"
        return self._pool.request(method, url, json=body, headers=headers, redirect=False)

    def _is_ours(self, url: str) -> bool:
        return urlsplit(url)[:2] == urlsplit(self._url)[:2]


def _is_good(answer: urllib3.BaseHTTPResponse, *, follow: bool) -> bool:
    """What leads elsewhere is an answer only to who asked for the way."""
    return answer.status < HTTPStatus.MULTIPLE_CHOICES or (not follow and answer.status in _MOVED)


def _next(answer: urllib3.BaseHTTPResponse) -> dict[str, str]:
    """What to ask for next, of the same path: whatever host a link names, the token goes there no more than before."""
    found = _NEXT.search(answer.headers.get("Link", ""))
    return dict(parse_qsl(urlsplit(found[1]).query)) if found else {}


def _parsed(method: str, path: str, answer: urllib3.BaseHTTPResponse) -> Any:
    try:
        return json.loads(answer.data) if answer.data else None
    except ValueError as error:
        complaint = f"GitHub answered {method} {path} with something that is no JSON."
        raise GitHubError(complaint, code=answer.status, retryable=True) from error


def _error(method: str, path: str, answer: Outcome) -> GitHubError:
    if not isinstance(answer, urllib3.BaseHTTPResponse):
        return GitHubError(f"GitHub did not answer {method} {path}.", code=0, retryable=True)
    limited = asked_to_wait(answer) is not None
    return GitHubError(
        f"GitHub answered {method} {path} with {answer.status}: {_words(answer)}",
        code=answer.status,
        retryable=limited or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR,
    )


def _words(answer: urllib3.BaseHTTPResponse) -> str:
    try:
        said = json.loads(answer.data)
        details = "; ".join(filter(None, map(_detail, said.get("errors") or ())))
        words = ": ".join(filter(None, (str(said.get("message", "")), details)))
    except (ValueError, AttributeError, TypeError):
        words = ""
    return words[: limits.STATUS_LINE_CHARS] or answer.reason or "no reason given"


def _detail(error: Any) -> str:
    """GitHub has two forms of it, and words only in some."""
    if not isinstance(error, dict):
        return str(error)
    return str(error.get("message") or f"{error.get('field', '')} {error.get('code', '')}".strip())
