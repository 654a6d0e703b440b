"""The public HTTP API, one method per route. Errors of the one shape become exceptions."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self
from urllib.parse import quote, urlsplit

import httpx

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE = 200
TERMINAL = {
    "run_completed": "completed",
    "run_failed": "failed",
    "run_cancelled": "cancelled",
    "run_timed_out": "timed_out",
}  # the last event of a run, and the status it leaves
_TIMEOUT = httpx.Timeout(35, connect=5)  # an HTTP API answers within 30 s
_IN_NAMES = ":@"  # of users and organizations

Json = dict[str, Any]


class ApiError(Exception):
    """The API said no, in its own words."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message") or f"the API answered {status}"))
        self.status = status
        self.type = str(error.get("type", "internal_error"))
        self.retryable = bool(error.get("retryable", status >= 500))
        self.request_id = error.get("request_id")
        self.details: list[Mapping[str, str]] = list(error.get("details") or [])


class Unreachable(Exception):
    """Nobody answers at the URL."""

    def __init__(self, url: str, reason: object) -> None:
        parts = urlsplit(url)
        super().__init__(f"nobody answers at {parts.scheme}://{parts.netloc} ({reason})")
        self.is_local = is_loopback(url)


@dataclass(frozen=True)
class Event:
    """One line of a run's log. An unknown type is no error: the server may be newer than we are."""

    run_id: str
    seq: int
    ts: str
    attempt: int
    type: str
    data: Json = field(default_factory=dict)


class Ticket(NamedTuple):
    ticket: str
    websocket_url: str


class Link(NamedTuple):
    url: str
    expires_at: str


class LogPart(NamedTuple):
    name: str
    link: Link


class Log(NamedTuple):
    """`whole` is None while the run is at work, or if its last sandbox died: then the parts are all there is."""

    whole: Link | None
    parts: list[LogPart]


class Target(Protocol):
    def write(self, chunk: bytes, /) -> int: ...


class Api:
    def __init__(self, endpoint: str, token: str | None) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._http = httpx.Client(
            base_url=self.endpoint,
            headers={"authorization": f"Bearer {token}"} if token else {},
            timeout=_TIMEOUT,
            trust_env=not self.is_local,  # a proxy has no business between us and our own machine
        )

    @property
    def is_local(self) -> bool:
        return is_loopback(self.endpoint)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._http.close()

    def health(self) -> Json:
        return self._call("GET", "/health", also_ok={503})

    def start(self, body: Json, *, headers: Mapping[str, str]) -> Json:
        return self._call("POST", "/execute", json=body, headers=headers)

    def runs(self, **filters: str | int | None) -> Json:
        given = {name: value for name, value in filters.items() if value is not None}
        return self._call("GET", "/runs", params=given)

    def run(self, run_id: str) -> Json:
        found: Json = self._call("GET", _path(run_id))["run"]
        return found

    def events(self, run_id: str, *, after: int) -> list[Event]:
        page = self._call("GET", _path(run_id, "events"), params={"after": after, "limit": PAGE})
        return [event_of(found) for found in page["events"]]

    def logs(self, run_id: str, *, after: str | None = None) -> Log:
        """With the parts behind the one named `after`, a page of them."""
        params = {"limit": PAGE} | ({"after": after} if after else {})
        answer = self._call("GET", _path(run_id, "logs"), params=params)
        until = answer["expires_at"]
        parts = [LogPart(part["name"], Link(part["url"], until)) for part in answer.get("parts") or ()]
        return Log(Link(answer["url"], until) if answer["url"] else None, parts)

    def diff(self, run_id: str) -> Link:
        answer = self._call("GET", _path(run_id, "diff"))
        return Link(answer["url"], answer["expires_at"])

    def cancel(self, run_id: str) -> Json:
        return self._call("POST", _path(run_id, "cancel"))

    def raise_budget(self, run_id: str, limits: Mapping[str, float]) -> Json:
        """Without limits: continue."""
        return self._call("POST", _path(run_id, "budget"), json=dict(limits))

    def say(self, run_id: str, text: str, *, headers: Mapping[str, str]) -> Json:
        return self._call("POST", _path(run_id, "messages"), json={"text": text}, headers=headers)

    def answer_approval(self, run_id: str, approval_id: str, answer: Mapping[str, str]) -> Json:
        return self._call("POST", _path(run_id, "approvals", quote(approval_id, safe="")), json=dict(answer))

    def pause(self, run_id: str, *, now: bool) -> Json:
        return self._call("POST", _path(run_id, "pause"), json={"now": now})

    def resume(self, run_id: str) -> Json:
        return self._call("POST", _path(run_id, "resume"))

    def usage(self, month: str | None) -> Json:
        return self._call("GET", "/usage", params={"month": month} if month else {})

    def quota(self, kind: str, name: str) -> Json:
        """`kind` is users or orgs."""
        return self._call("GET", f"/quotas/{kind}/{quote(name, safe=_IN_NAMES)}")

    def set_quota(self, kind: str, name: str, limits: Mapping[str, float]) -> Json:
        return self._call("PUT", f"/quotas/{kind}/{quote(name, safe=_IN_NAMES)}", json=dict(limits))

    def ticket(self) -> Ticket:
        answer = self._call("POST", "/tickets")
        return Ticket(answer["ticket"], answer["websocket_url"])

    def download(self, link: Link, target: Target) -> int:
        """Write what a presigned URL holds; returns its size. The URL is its own authorization: no token goes there."""
        size = 0
        try:
            with httpx.stream("GET", link.url, timeout=_TIMEOUT, trust_env=not is_loopback(link.url)) as answer:
                if answer.status_code != httpx.codes.OK:
                    raise ApiError(answer.status_code, {"message": f"the storage answered {answer.status_code}"})
                for chunk in answer.iter_bytes():
                    size += target.write(chunk)
        except httpx.HTTPError as error:
            raise Unreachable(link.url, error) from error
        return size

    def _call(self, method: str, path: str, *, also_ok: set[int] | None = None, **options: Any) -> Json:
        try:
            answer = self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            raise Unreachable(self.endpoint, error) from error
        body = _body_of(answer)
        if answer.is_success or answer.status_code in (also_ok or set()):
            return body
        error_info = body.get("error")
        raise ApiError(answer.status_code, error_info if isinstance(error_info, dict) else body)


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def event_of(found: Mapping[str, Any]) -> Event:
    return Event(
        run_id=found["run_id"],
        seq=found["seq"],
        ts=found["ts"],
        attempt=found["attempt"],
        type=found["type"],
        data=found.get("data") or {},
    )


def _path(run_id: str, *more: str) -> str:
    return "/".join(["/runs", quote(run_id, safe=""), *more])


def _body_of(answer: httpx.Response) -> Json:
    try:
        body = answer.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        return body
    raise ApiError(answer.status_code, {"message": f"the endpoint answered {answer.status_code} without JSON"})
