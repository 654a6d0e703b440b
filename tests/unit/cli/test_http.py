"""The small HTTP client: connections that are kept, broken off, or lead through a proxy."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from sandpiper_cli.http import NoAnswer, Server, proxy_for

if TYPE_CHECKING:
    from collections.abc import Iterator

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
SHORT = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"
IN_CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
GOODBYE = b""  # in a script: close the connection


class Scripted:
    """Answers each request with the next piece of its script."""

    def __init__(self, *script: bytes) -> None:
        self._script = list(script)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.asked: list[str] = []
        self.connections = 0
        self.has_closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while self._script:
            connection, _ = self._listener.accept()
            self.connections += 1
            with connection:
                self._talk(connection)
            self.has_closed.set()

    def _talk(self, connection: socket.socket) -> None:
        while self._script and (request := connection.recv(65536)):
            self.asked.append(request.decode())
            connection.sendall(self._script.pop(0))
            if self._script and self._script[0] == GOODBYE:
                self._script.pop(0)
                return

    @classmethod
    @contextmanager
    def running(cls, *script: bytes) -> Iterator[Scripted]:
        server = cls(*script)
        server._thread.start()
        yield server
        server._listener.close()
        server._thread.join(timeout=5)


def test_requests_share_a_connection() -> None:
    with Scripted.running(WHOLE, IN_CHUNKS, WHOLE) as there, Server(there.url) as server:
        assert [server.ask("GET", there.url + "/a", {}).read() for _ in range(3)] == [b"ok"] * 3
        assert there.connections == 1


def test_a_connection_that_was_closed_meanwhile_is_opened_anew() -> None:
    with Scripted.running(WHOLE, GOODBYE, WHOLE) as there, Server(there.url) as server:
        server.ask("POST", there.url, {}, b"first").read()
        assert there.has_closed.wait(timeout=5)
        server.ask("POST", there.url, {}, b"second").read()
        assert (there.connections, len(there.asked)) == (2, 2)


def test_an_answer_that_ends_early_is_none() -> None:
    with (
        Scripted.running(SHORT, GOODBYE) as there,
        Server(there.url) as server,
        pytest.raises(NoAnswer, match="7 bytes before"),
    ):
        server.ask("GET", there.url, {}).read()


def test_an_answer_that_nobody_read_is_not_taken_for_the_next_one() -> None:
    with Scripted.running(WHOLE, GOODBYE, IN_CHUNKS) as there, Server(there.url) as server:
        server.ask("GET", there.url, {})
        assert server.ask("GET", there.url, {}).read() == b"ok"


def test_who_speaks_no_http_gives_no_answer() -> None:
    with (
        Scripted.running(b"SSH-2.0-OpenSSH\r\n", GOODBYE) as there,
        Server(there.url) as server,
        pytest.raises(NoAnswer),
    ):
        server.ask("GET", there.url, {})


def test_a_proxy_of_the_environment_is_asked_for_the_whole_url_and_gets_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Scripted.running(WHOLE) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//ann:pass%20word@"))
        with Server("http://api.example.com") as server:
            assert server.ask("GET", "http://api.example.com/runs?limit=1", {}).read() == b"ok"
        head = proxy.asked[0].split("\r\n")
    assert head[0] == "GET http://api.example.com/runs?limit=1 HTTP/1.1"
    assert {"Host: api.example.com", "Proxy-Authorization: Basic YW5uOnBhc3Mgd29yZA=="} <= set(head)


def test_a_proxy_is_asked_for_a_tunnel_to_what_has_tls_and_sees_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    with Scripted.running(b"HTTP/1.1 407 Who are you\r\n\r\n", GOODBYE) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        with Server("https://api.example.com") as server, pytest.raises(NoAnswer, match="407"):
            server.ask("GET", "https://api.example.com/runs", {"Authorization": "Bearer secret"})
        assert proxy.asked[0].startswith("CONNECT api.example.com:443 ")
        assert "secret" not in "".join(proxy.asked)


def test_our_own_machine_is_reached_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with Scripted.running(WHOLE) as there, Server(there.url) as server:
        assert server.ask("GET", there.url + "/runs", {}).read() == b"ok"
        assert there.asked[0].startswith("GET /runs ")


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("https://api.example.com/x", "//proxy.example:3128"),
        ("http://api.example.com", "//all.example:1"),
        ("https://inside.example.com", None),
        ("https://127.0.0.1:8787", None),
        ("http://localhost", None),
    ],
)
def test_the_environment_says_which_proxy_is_for_what(
    monkeypatch: pytest.MonkeyPatch, url: str, proxy: str | None
) -> None:
    monkeypatch.setenv("https_proxy", "proxy.example:3128")
    monkeypatch.setenv("all_proxy", "http://all.example:1")
    monkeypatch.setenv("no_proxy", "inside.example.com")
    found = proxy_for(urlsplit(url))
    assert (found and f"//{found.netloc}") == proxy
