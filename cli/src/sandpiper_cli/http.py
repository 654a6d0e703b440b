"""HTTP with what Python has: to load a larger client would take longer than most commands take altogether."""

from __future__ import annotations

import contextlib
import select
from base64 import b64encode
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Self
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from sandpiper_cli.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CONNECT_SECONDS = 5
ANSWER_SECONDS = 35  # an HTTP API answers within 30
_CHUNK_BYTES = 64 * 1024


class NoAnswer(Exception):
    """Nobody answers there, or not to the end."""


class Answer:
    def __init__(self, response: HTTPResponse) -> None:
        self.status = response.status
        self._response = response

    def read(self) -> bytes:
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        while chunk := self._chunk():
            yield chunk
        if self._response.length:  # which reading in pieces does not mind
            raise NoAnswer(f"the connection ended {self._response.length} bytes before the end")

    def _chunk(self) -> bytes:
        with _as_no_answer():
            return self._response.read(_CHUNK_BYTES)


class Server:
    """Whoever answers at the host of a URL. The connection is kept for the next request."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        proxy = proxy_for(parts)
        # in the clear, a proxy is asked for the whole URL; with TLS it is asked for a tunnel, and knows no more
        asks_proxy = proxy is not None and parts.scheme == "http"
        self._origin = f"{parts.scheme}://{parts.netloc}" if asks_proxy else ""
        self._headers = _credentials(proxy) if asks_proxy else {}
        self._connection = _connection(parts, proxy)
        self._response: HTTPResponse | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def ask(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        parts = urlsplit(url)
        target = self._origin + urlunsplit(("", "", parts.path or "/", parts.query, ""))
        try:
            with _as_no_answer():
                self._connect()
                self._connection.request(method, target, body, {**self._headers, **headers})
                self._response = self._connection.getresponse()
        except NoAnswer:
            self._connection.close()
            raise
        return Answer(self._response)

    def _connect(self) -> None:
        if not self._can_go_on():
            self._connection.close()
            self._connection.connect()
            self._connection.sock.settimeout(ANSWER_SECONDS)

    def _can_go_on(self) -> bool:
        """The answer before was read to its end, and nothing came after it: that could only be a goodbye."""
        if self._connection.sock is None or (self._response is not None and not self._response.isclosed()):
            return False
        return not select.select([self._connection.sock], [], [], 0)[0]


def _connection(parts: SplitResult, proxy: SplitResult | None) -> HTTPConnection:
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    if proxy is None:
        return kind(str(parts.hostname), parts.port, timeout=CONNECT_SECONDS)
    connection = kind(str(proxy.hostname), proxy.port or 80, timeout=CONNECT_SECONDS)
    if kind is HTTPSConnection:
        connection.set_tunnel(str(parts.hostname), parts.port or 443, _credentials(proxy))
    return connection


def proxy_for(parts: SplitResult) -> SplitResult | None:
    """None for our own machine, between us and which a proxy has no business."""
    if is_loopback(parts.geturl()):
        return None
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - slow to load, and not for our own machine

    found = getproxies()
    url = found.get(parts.scheme) or found.get("all")
    return urlsplit(url if "://" in url else f"http://{url}") if url and not proxy_bypass(parts.netloc) else None


def _credentials(proxy: SplitResult | None) -> dict[str, str]:
    if proxy is None or proxy.username is None:
        return {}
    said = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {b64encode(said).decode()}"}


@contextlib.contextmanager
def _as_no_answer() -> Iterator[None]:
    try:
        yield
    except (OSError, HTTPException) as error:
        raise NoAnswer(str(error) or type(error).__name__) from error
