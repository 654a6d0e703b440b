"""B's way to the run's repository: reading only, this one only, and the token stays with A.

Git's two reading requests are sent on to the repository as they are, with A's credentials; every other is refused. What
B sends is never given to a git of A's to chew on.
"""

from __future__ import annotations

import base64
import http.client
import re
import ssl
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sandbox_task.isolation.egress.server import Server
from sandbox_task.workspace.git import current
from sandpiper import limits
from sandpiper.errors import SandpiperError

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from email.message import Message
    from io import BufferedIOBase

    from sandbox_task.workspace.git import MovedTo, Token

_NAME = "repository.git"
_REFS = f"/{_NAME}/info/refs?service=git-upload-pack"
_PACK = f"/{_NAME}/git-upload-pack"
_PACK_REQUEST = "application/x-git-upload-pack-request"
_SENT_ON = ("Accept", "Content-Type", "Content-Encoding", "Git-Protocol")
_PLAIN = re.compile(r"[\x20-\x7e]{1,200}")
_PIECE = 1 << 16
_MOVED = frozenset({301, 302, 307, 308})


def remote_url(port: int) -> str:
    """Where B finds the repository, at a door of A's."""
    return f"http://127.0.0.1:{port}/{_NAME}"


def remote_config(port: int) -> str:
    """Lines for the configuration of B's own `.git`: what is missing there comes from the relay when it is needed."""
    return f"""[remote "origin"]
\turl = {remote_url(port)}
\tfetch = +refs/heads/*:refs/remotes/origin/*
\tpromisor = true
\tpartialclonefilter = blob:none
\tproxy =
[extensions]
\tpartialClone = origin
"""


class GitRelay:
    """`server` is to be given to the gateway."""

    def __init__(self, url: str, *, token: Token, moved_to: MovedTo = None) -> None:
        self.url, self._token, self._moved_to = url, token, moved_to
        self.server = Server("git", self._handle, at_most=limits.GIT_RELAY_CONNECTIONS, when_full=b"")

    def _handle(self, connection: socket.socket) -> None:
        connection.settimeout(limits.EGRESS_IDLE_SECONDS)
        _Handler(connection, ("", 0), self)  # type: ignore[arg-type] # all that it needs of a server

    def finds_again(self, status: int) -> bool:
        """Whether a repository that has moved is known at another place now."""
        before = self.url
        if self._moved_to and status in _MOVED:
            self.url = self._moved_to() or before
        return self.url != before

    @contextmanager
    def asking(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> Iterator[http.client.HTTPResponse]:
        """Raises OSError, HTTPException, or SandpiperError if there is no token to be had."""
        target = urlsplit(self.url)
        line = _line(target.scheme, str(target.hostname), target.port)
        if token := current(self._token):
            pair = base64.b64encode(f"x-access-token:{token}".encode()).decode()
            headers = {**headers, "Authorization": f"Basic {pair}"}
        with closing(line):
            line.request(method, f"{target.path}{path.removeprefix(f'/{_NAME}')}", body or None, headers)
            with line.getresponse() as answer:
                yield answer


class _Handler(BaseHTTPRequestHandler):
    server: GitRelay  # type: ignore[assignment]
    protocol_version = "HTTP/1.1"
    timeout = limits.EGRESS_IDLE_SECONDS
    has_answered = False

    def do_GET(self) -> None:
        if self.path == _REFS:
            self._send_on(b"")
        else:
            self._refuse(403, "only reading the run's own repository is possible; Sandpiper pushes its work itself")

    def do_POST(self) -> None:
        if self.path != _PACK or self.headers.get("Content-Type") != _PACK_REQUEST:
            self._refuse(403, "only reading the run's own repository is possible; Sandpiper pushes its work itself")
            return
        try:
            body = b"".join(_body(self.headers, self.rfile))
        except ValueError as error:
            self._refuse(400, str(error))
            return
        self._send_on(body)

    def _send_on(self, body: bytes) -> None:
        headers = {name: value for name in _SENT_ON if _PLAIN.fullmatch(value := self.headers.get(name) or "")}
        headers["User-Agent"] = "git/sandpiper"
        try:
            with self.server.asking(self.command, self.path, headers, body) as answer:
                if not self.server.finds_again(answer.status):
                    self._hand_back(answer)
            if not self.has_answered:
                with self.server.asking(self.command, self.path, headers, body) as answer:
                    self._hand_back(answer)
        except (OSError, http.client.HTTPException, SandpiperError):
            if not self.has_answered:
                self._refuse(502, "the repository does not answer")

    def _hand_back(self, answer: http.client.HTTPResponse) -> None:
        if answer.status != 200:
            self._refuse(502, f"the repository answers {answer.status}")
            return
        self._give(answer)

    def _give(self, answer: http.client.HTTPResponse) -> None:
        """However long it is; its end is the connection's."""
        self.send_response(200)
        self.send_header("Content-Type", answer.headers.get_content_type())
        self.send_header("Cache-Control", "no-cache")
        self._end_with_connection()
        while piece := answer.read(_PIECE):
            self.wfile.write(piece)

    def _refuse(self, status: int, reason: str) -> None:
        said = f"Sandpiper: {reason}.\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(said)))
        self._end_with_connection()
        self.wfile.write(said)

    def _end_with_connection(self) -> None:
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = self.has_answered = True

    def log_message(self, *_: object) -> None:
        """Quiet: refusals are told to whoever asked."""


def _line(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=limits.GIT_SECONDS, context=context)
    return http.client.HTTPConnection(host, port, timeout=limits.GIT_SECONDS)


def _body(headers: Message, source: BufferedIOBase) -> Iterator[bytes]:
    """In one piece or in chunks. Raises ValueError in words."""
    left = limits.GIT_RELAY_REQUEST_BYTES
    chunked = headers.get("Transfer-Encoding") == "chunked"
    while True:
        size = _size(source.readline(20), 16) if chunked else _size(headers.get("Content-Length", "").encode(), 10)
        left -= size
        if left < 0:
            raise ValueError("the request is too large")
        yield source.read(size)
        if not chunked or (source.readline(3) and size == 0):
            return


def _size(text: bytes, base: int) -> int:
    if not re.fullmatch(rb"[0-9a-fA-F]{1,10}", text.strip()):
        raise ValueError("the request's length is missing or wrong")
    return int(text, base)
