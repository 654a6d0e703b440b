"""Every value of every field of `POST /execute` that its document allows is taken, and every one that it rules out is
refused. On fakes, because it takes a thousand requests; the whole of the API keeps to its document in
tests/e2e/test_openapi.py."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from api.app import app
from api.requests import current_world
from tests.unit.functions.support import Api, event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHECKS = (
    "not_a_server_error,status_code_conformance,response_schema_conformance,"
    "negative_data_rejection,positive_data_acceptance"
)


TOKEN = "Bearer of-ann"


class Door(BaseHTTPRequestHandler):
    """What HTTP API would do. Each request finds a world of its own, so that none is a repetition of another."""

    protocol_version = "HTTP/1.1"
    one_at_a_time = threading.Lock()

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode(errors="replace")
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.one_at_a_time:
            api = Api()
            app.dependency_overrides[current_world] = lambda: api.world
            answer = api.invoke(event(self.command, self.path, body or None, headers, _caller(headers)))
        data = json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in {**answer.headers, "content-length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):  # whatever the method
            return self.answer
        raise AttributeError(name)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def _caller(headers: dict[str, str]) -> str | None:
    """Whom the authorizer would have named."""
    return "ann" if headers.get("authorization") == TOKEN else None


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "sandpiper-test")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Sandpiper")
    with _serving() as server:
        yield f"http://127.0.0.1:{server.server_port}"
    app.dependency_overrides.clear()


@contextmanager
def _serving() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_run_is_started_by_what_the_document_allows_and_by_nothing_else(url: str, tmp_path: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "run", f"{url}/openapi.json",
        "--header", f"Authorization: {TOKEN}",
        "--include-operation-id", "execute", "--checks", CHECKS, "--phases", "coverage", "--seed", "20261118",
        "--continue-on-failure", "--no-color", "--warnings", "off", "--generation-database", "none",
    ]  # fmt: skip
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=150)
    assert said.returncode == 0, said.stdout[-6000:]
