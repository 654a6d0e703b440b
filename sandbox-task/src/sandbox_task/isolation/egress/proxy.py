"""The one way out: a CONNECT proxy that lets B reach listed hosts, at addresses that have been checked."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING

from sandbox_task.isolation.egress.addresses import parse_address
from sandbox_task.isolation.egress.relay import relay
from sandbox_task.isolation.egress.server import Server
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.isolation.egress.policy import Policy

_REQUEST = re.compile(rb"([A-Z]{1,20}) ([\x21-\x7e]{1,2048}) HTTP/1\.[01]\r\n")
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*):([0-9]{1,5})")
_END = b"\r\n\r\n"


class Refused(Exception):
    """`host` is what was asked for, in printable characters; the message says why not."""

    def __init__(self, host: str, reason: str, *, status: str = "403 Forbidden") -> None:
        super().__init__(reason)
        self.host, self.reason, self.status = host, reason, status

    def answer(self) -> bytes:
        body = f"Sandpiper: {self.host} can't be reached: {self.reason}.\n".encode()
        head = f"HTTP/1.1 {self.status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}"
        return f"{head}\r\nConnection: close\r\n\r\n".encode() + body


def look_up(host: str, port: int) -> list[str]:
    """Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Proxy:
    """`policy` may be replaced at any time, also by one that is still being found out.

    `on_refusal(host, reason)` is called once for each pair, by any thread.
    """

    def __init__(
        self,
        policy: Policy | Future[Policy],
        *,
        on_refusal: Callable[[str, str], None],
        resolve: Callable[[str, int], list[str]] = look_up,
    ) -> None:
        self.policy = policy
        self._on_refusal, self._resolve = on_refusal, resolve
        self._lock = threading.Lock()
        self._reported: set[tuple[str, str]] = set()
        full = Refused("the host", "too many connections are open", status="503 Service Unavailable").answer()
        self.server = Server("egress", self._handle, at_most=limits.EGRESS_CONNECTIONS, when_full=full)

    def close(self) -> None:
        self.server.close()

    def _handle(self, client: socket.socket) -> None:
        try:
            head, rest = _read_head(client)
            host, port = _target(head)
            upstream = self._dial(host, port)
        except Refused as refused:
            self._report(refused)
            _say_and_close(client, refused.answer())
            return
        with upstream:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            upstream.sendall(rest)
            relay(client, upstream)

    def _dial(self, host: str, port: int) -> socket.socket:
        """To exactly an address that was checked: the name is not looked up again."""
        policy = self.current_policy(host)
        if reason := policy.refusal(host, port):
            raise Refused(host, reason)
        try:
            found = [(text, parse_address(text)) for text in self._resolve(host, port)]
        except OSError as error:
            raise Refused(host, "its name is not known", status="502 Bad Gateway") from error
        if reason := policy.address_refusal(host, port, [address for _, address in found]):
            raise Refused(host, reason)
        for text, _ in found:
            with contextlib.suppress(OSError):
                return socket.create_connection((text, port), timeout=limits.EGRESS_DIAL_SECONDS)
        raise Refused(host, "it does not answer", status="502 Bad Gateway")

    def current_policy(self, host: str) -> Policy:
        """Raises Refused if there is none."""
        if not isinstance(self.policy, Future):
            return self.policy
        try:
            return self.policy.result(limits.EGRESS_POLICY_SECONDS)
        except Exception as error:
            raise Refused(host, f"what may be reached could not be found out ({error})") from error

    def _report(self, refused: Refused) -> None:
        """Bounded, since B can think of any number of names."""
        with self._lock:
            seen = (refused.host, refused.reason)
            if seen in self._reported or len(self._reported) >= limits.EGRESS_REPORTED:
                return
            self._reported.add(seen)
        self._on_refusal(refused.host, refused.reason)


def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """The request's head, and what came after it."""
    deadline = time.monotonic() + limits.EGRESS_HEAD_SECONDS
    data = bytearray()
    while _END not in data:
        left = deadline - time.monotonic()
        if len(data) > limits.EGRESS_HEAD_BYTES or left <= 0:
            raise Refused("the host", "the request is too long or too slow", status="400 Bad Request")
        client.settimeout(left)
        try:
            part = client.recv(limits.EGRESS_HEAD_BYTES)
        except TimeoutError:
            continue
        if not part:
            raise ConnectionAbortedError
        data += part
    head, _, rest = bytes(data).partition(_END)
    return head + _END, rest


def _target(head: bytes) -> tuple[str, int]:
    request = _REQUEST.match(head)
    if request is None:
        raise Refused("the host", "this is no request to a proxy", status="400 Bad Request")
    method, target = request[1], request[2].decode("ascii")
    if method != b"CONNECT":
        raise Refused(_host_of(target), "plain http is not let out, only https (CONNECT)")
    authority = _AUTHORITY.fullmatch(target)
    if authority is None:
        raise Refused(_host_of(target), "this is no name of a host with a port")
    return authority[1].strip("[]").lower(), int(authority[2])


def _host_of(target: str) -> str:
    return target.partition("://")[2].partition("/")[0][:253] or target[:253]


def _say_and_close(client: socket.socket, answer: bytes) -> None:
    """What the client still sends is taken, or the answer would be lost with the connection."""
    client.settimeout(limits.EGRESS_HEAD_SECONDS)
    client.sendall(answer)
    client.shutdown(socket.SHUT_WR)
    client.settimeout(1)
    for _ in range(16):
        if not client.recv(1 << 16):
            return
