"""A server on loopback that answers what a test says and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Reply:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    hangs_up: bool = False

    def data(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body).encode()


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Loopback:
    """The last reply of a route is given again and again."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._replies: defaultdict[str, list[Reply]] = defaultdict(list)
        self.url = ""

    def reply(self, route: str, *replies: Reply) -> None:
        self._replies[route] += replies

    @property
    def paths(self) -> list[str]:
        return [f"{asked.method} {asked.path}" for asked in self.asked]

    def answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        left = self._replies.get(f"{asked.method} {asked.path}") or self._replies.get(
            f"{asked.method} {asked.path.partition('?')[0]}"
        )
        if not left:
            return Reply(404, {"message": "Not Found"})
        return left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def serving() -> Iterator[Loopback]:
    loopback = Loopback()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = loopback.answer(Asked(self.command, self.path, headers, json.loads(body) if body else None))
            if reply.hangs_up:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in {**reply.headers, "Content-Length": str(len(reply.data()))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.data())

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve  # noqa: N815 - http.server's names

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    loopback.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield loopback
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
