"""Stand-ins for the world outside: a server on loopback, a book of names, and a proxy that knows both."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Self

from sandbox_task.isolation.egress.policy import Policy, make_policy
from sandbox_task.isolation.egress.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "registry.example"
LOOPBACK = "127.0.0.0/8"


class Origin:
    """Says what it hears, in capitals, once the other side has said all. Counts who came."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.visits = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.visits += 1
            with connection, contextlib.suppress(OSError):
                connection.settimeout(5)
                heard = b""
                while part := connection.recv(1 << 16):
                    heard += part
                connection.sendall(heard.upper())


def policy(origin: Origin, *, private: Iterable[str] = (LOOPBACK,), egress: Iterable[str] | None = None) -> Policy:
    names = [f"{NAME}:{origin.port}"] if egress is None else egress
    return make_policy(
        ecosystems=(), registries={}, github_url="", egress=names, allowed=["*", f"*:{origin.port}"], private=private
    )


class Outside:
    """A proxy on a loopback port; names lead where `book` says. Refusals are kept."""

    def __init__(self, rules: Policy, book: dict[str, list[str]] | None = None) -> None:
        self.book = {NAME: ["127.0.0.1"]} if book is None else book
        self.refusals: list[tuple[str, str]] = []
        self.lookups: list[str] = []
        self.proxy = Proxy(rules, on_refusal=lambda *pair: self.refusals.append(pair), resolve=self.resolve)
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self.proxy.server.serve(listener)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.proxy.close()

    def resolve(self, host: str, _port: int) -> list[str]:
        self.lookups.append(host)
        if host not in self.book:
            raise OSError("unknown")
        return self.book[host]

    def ask(self, request: bytes) -> bytes:
        """Everything that the proxy answers to it."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as client:
            client.sendall(request)
            client.shutdown(socket.SHUT_WR)
            return _all(client)

    def connect(self, target: str) -> bytes:
        return self.ask(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())


def _all(client: socket.socket) -> bytes:
    data = b""
    while part := client.recv(1 << 16):
        data += part
    return data
