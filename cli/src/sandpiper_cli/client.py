"""The public HTTP API, one method per route. Errors of the one shape become exceptions."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass, field
from json import dumps, loads
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self
from urllib.parse import quote, urlencode

from sandpiper_cli import exits
from sandpiper_cli.addresses import is_loopback
from sandpiper_cli.failures import ApiError, Unreachable
from sandpiper_cli.http import NoAnswer, Server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PAGE = 200
TERMINAL = {
    "run_completed": "completed",
    "run_failed": "failed",
    "run_cancelled": "cancelled",
    "run_timed_out": "timed_out",
}  # the last event of a run, and the status it leaves
_OK, _NOT_OK = 200, 300
_IN_NAMES = ":@"  # of users and organizations

Json = dict[str, Any]


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
        self._server = Server(self.endpoint)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    @property
    def is_local(self) -> bool:
        return is_loopback(self.endpoint)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.close()

    def health(self) -> Json:
        return self._call("GET", "/health", also_ok=(503,))

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

    def diff_text(self, run_id: str) -> str:
        content = io.BytesIO()
        self.download(self.diff(run_id), content)
        return content.getvalue().decode("utf-8", errors="replace")

    def download(self, link: Link, target: Target) -> int:
        """Write what a presigned URL holds; returns its size. The URL is its own authorization: no token goes there."""
        size = 0
        with _unreachable(link.url), Server(link.url) as storage:
            answer = storage.ask("GET", link.url, {})
            if answer.status != _OK:
                raise ApiError(answer.status, {"message": f"the storage answered {answer.status}"})
            for chunk in answer.chunks():
                size += target.write(chunk)
        return size

    def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int] | None = None,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        also_ok: tuple[int, ...] = (),
    ) -> Json:
        url = f"{self.endpoint}{path}?{urlencode(params)}" if params else f"{self.endpoint}{path}"
        content = {} if json is None else {"Content-Type": "application/json"}
        sent_headers = _sendable({**self._headers, **content, **(headers or {})})
        sent = None if json is None else dumps(json).encode()
        with _unreachable(self.endpoint):
            answer = self._server.ask(method, url, sent_headers, sent)
            body = _body_of(answer.status, answer.read())
        if answer.status < _NOT_OK or answer.status in also_ok:
            return body
        error = body.get("error")
        raise ApiError(answer.status, error if isinstance(error, dict) else body)


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


def _sendable(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            what = "the token" if name == "Authorization" else name
            raise exits.CliError(f"{what} has characters that can't be sent", exits.USAGE)
    return headers


def _body_of(status: int, content: bytes) -> Json:
    try:
        body = loads(content)
    except ValueError:
        body = None
    if isinstance(body, dict):
        return body
    raise ApiError(status, {"message": f"the endpoint answered {status} without JSON"})


@contextlib.contextmanager
def _unreachable(url: str) -> Iterator[None]:
    try:
        yield
    except NoAnswer as error:
        raise Unreachable(url, error) from error
