"""A service that fails for a while, injected between a sandbox and what it calls.

with FailingProxy(stack.info["aws_endpoint"], troubles=AWS_TROUBLES) as aws, rerouted(stack, AWS_ENDPOINT_URL=aws.url):
    …                           # sandboxes of runs that are started now talk to it
    aws.fail_for(run_id, 3)     # what names this run; how often is in `aws.failed[run_id, service]`
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections import Counter
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.e2e.conftest import Stack

_PER_CONNECTION = {"connection", "expect", "keep-alive", "transfer-encoding", "content-length"}


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    content_type: str


@dataclass(frozen=True)
class Trouble:
    """What becomes of a request: it is answered so, or the connection is cut, before or after it has been done."""

    answer: Answer | None = None
    is_done: bool = False


def _dynamodb(status: int, code: str) -> Trouble:
    body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "for a while"}
    return Trouble(Answer(status, json.dumps(body).encode(), "application/x-amz-json-1.0"))


def _s3(status: int, code: str) -> Trouble:
    body = f"<Error><Code>{code}</Code><Message>for a while</Message></Error>"
    return Trouble(Answer(status, body.encode(), "application/xml"))


CUT, ANSWER_LOST = Trouble(), Trouble(is_done=True)
AWS_TROUBLES: dict[str, Sequence[Trouble]] = {
    "dynamodb": (
        _dynamodb(400, "ProvisionedThroughputExceededException"),
        ANSWER_LOST,
        _dynamodb(500, "InternalServerError"),
        CUT,
    ),
    "s3": (_s3(503, "SlowDown"), ANSWER_LOST, _s3(500, "InternalError"), CUT),
}
MODEL_IS_DOWN: dict[str, Sequence[Trouble]] = {"other": (CUT,)}


class FailingProxy:
    """Requests reach what is behind it as they are, signatures included. `troubles` are by service, in turns."""

    def __init__(self, url: str, *, troubles: Mapping[str, Sequence[Trouble]]) -> None:
        self._behind = urlsplit(url).netloc
        self._troubles = {service: itertools.cycle(each) for service, each in troubles.items()}
        self._asked: dict[tuple[str, str], float] = {}
        self._until: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()
        self.failed: Counter[tuple[str, str]] = Counter()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def fail_for(self, mark: str, seconds: float) -> None:
        """Requests that have this in their path or body; each service from the next such request on."""
        with self._lock:
            self._asked |= {(mark, service): seconds for service in self._troubles}

    def trouble_for(self, path: str, headers: Mapping[str, str], body: bytes) -> Trouble | None:
        service, now = service_of(headers), time.monotonic()
        with self._lock:
            for key in [key for key in self._asked if key[1] == service and _has(key[0], path, body)]:
                self._until[key] = now + self._asked.pop(key)
            for key in [key for key, until in self._until.items() if now < until]:
                if key[1] == service and _has(key[0], path, body):
                    self.failed[key] += 1
                    return next(self._troubles[service])
        return None

    def forward(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[Answer, dict[str, str]]:
        connection = HTTPConnection(self._behind, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, _end_to_end(headers) | {"Content-Length": str(len(body))})
            answer = connection.getresponse()
            said = answer.headers.get("Content-Type", "")
            return Answer(answer.status, answer.read(), said), _end_to_end(answer.headers)


def service_of(headers: Mapping[str, str]) -> str:
    """By the scope of the signature: `…/20260101/us-east-1/s3/aws4_request`."""
    scope = headers.get("Authorization", "").partition("Credential=")[2].split("/")
    return scope[3] if len(scope) > 3 and scope[3] in AWS_TROUBLES else "other"


def _has(mark: str, path: str, body: bytes) -> bool:
    return mark in path or mark.encode() in body


def _end_to_end(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _PER_CONNECTION}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy: FailingProxy

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, HTTPException):  # either side has been cut off
            self.close_connection = True

    def _serve(self) -> None:
        headers = dict(self.headers.items())
        body = self.rfile.read(int(headers.get("Content-Length", 0)))
        trouble = self.proxy.trouble_for(self.path, headers, body)
        if trouble is not None and trouble.answer is not None:
            return self._answer(trouble.answer, {"Content-Type": trouble.answer.content_type})
        if trouble == CUT:
            self.close_connection = True
            return None
        answer, more = self.proxy.forward(self.command, self.path, headers, body)
        if trouble == ANSWER_LOST:
            self.close_connection = True
            return None
        return self._answer(answer, more)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815 - the base class names them

    def _answer(self, answer: Answer, headers: Mapping[str, str]) -> None:
        self.send_response_only(answer.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, *_args: object) -> None:
        """A test's output is not the place."""


@contextlib.contextmanager
def rerouted(stack: Stack, **environment: str) -> Iterator[None]:
    """Sandboxes of runs that are started meanwhile have this in their environment."""
    machine, arn = stack.aws("stepfunctions"), stack.outputs["StateMachineArn"]
    before = machine.describe_state_machine(stateMachineArn=arn)["definition"]
    changed: dict[str, Any] = json.loads(before)
    (container,) = changed["States"]["Launch"]["Arguments"]["Overrides"]["ContainerOverrides"]
    container["Environment"] += [{"Name": name, "Value": value} for name, value in environment.items()]
    machine.update_state_machine(stateMachineArn=arn, definition=json.dumps(changed))
    try:
        yield
    finally:
        machine.update_state_machine(stateMachineArn=arn, definition=before)
