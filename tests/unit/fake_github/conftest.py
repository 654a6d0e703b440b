"""A fake GitHub whose every word is held against GitHub's own description of itself."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import jwt
import pytest

from sandpiper_local.fake_github.keys import app_keys
from sandpiper_local.fake_github.runner import FakeGitHub
from tests.unit.fake_github.schemas import complaints_about_answer, complaints_about_event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

    from sandpiper_local.fake_github.calls import Route

APP_ID = 4711
REPO = "acme/till"
SECRET = "a-webhook-secret"
FILES = {"README.md": "# Till\n", "till.py": "".join(f"line {number}\n" for number in range(1, 21))}


@dataclass
class Receiver:
    """Where webhooks arrive; answers with `status`."""

    url: str = ""
    status: int = 202
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@dataclass
class World:
    """`acme/till` with the App on it; `ann` may write, `rob` may read, `eve` may nothing."""

    github: FakeGitHub
    installation: int
    receiver: Receiver

    def app_token(self, **claims: Any) -> str:
        now = int(time.time())
        return jwt.encode({"iss": str(APP_ID), "iat": now - 10, "exp": now + 500} | claims, app_keys()[0], "RS256")

    def installation_token(self, **body: Any) -> str:
        path = f"/app/installations/{self.installation}/access_tokens"
        answer = self.api("POST", path, body, token=self.app_token())
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])

    def api(self, method: str, path: str, body: Any = None, *, token: str | None = None, **more: Any) -> httpx.Response:
        headers = ({"Authorization": f"Bearer {token}"} if token else {}) | more.pop("headers", {})
        return self.github.http.request(method, f"{self.github.api_url}{path}", json=body, headers=headers, **more)

    def as_ann(self, method: str, path: str, body: Any = None) -> Any:
        return self.github.call(method, f"/repos/{REPO}{path}", body, by="ann")

    def events(self) -> list[str]:
        self.github.settle()
        return [f"{one['event']}.{one['action']}" for one in self.github.deliveries]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    seen = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.received.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(seen.status)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        seen.url = f"http://127.0.0.1:{server.server_port}/github/webhook"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield seen
        server.shutdown()
        thread.join()


@pytest.fixture
def world(tmp_path: Path, receiver: Receiver) -> Iterator[World]:
    complaints: list[str] = []

    def observe_answer(route: Route, status: int, body: Any) -> None:
        if route.path != "/graphql":
            complaints.extend(complaints_about_answer(f"{route.method} {route.path}", status, body))

    def observe_event(event: str, payload: Any) -> None:
        complaints.extend(complaints_about_event(event, payload))

    with FakeGitHub(tmp_path, observe_answer=observe_answer, observe_event=observe_event) as github:
        github.set_app(id=APP_ID, public_key=app_keys()[1], webhook_url=receiver.url, webhook_secret=SECRET)
        github.add_repository(REPO, FILES, permissions={"ann": "write", "rob": "read", "eve": "none"})
        yield World(github, github.install("acme", [REPO]), receiver)
        github.settle()
    assert complaints == []


def changed(number: int) -> dict[str, str]:
    return {"till.py": "".join(f"line {n}\n" if n != number else "another line\n" for n in range(1, 21))}


@pytest.fixture
def pull(world: World) -> int:
    """By ann, with line 10 of till.py changed."""
    world.github.commit(REPO, "topic", changed(10), by="ann")
    return world.github.open_pull(REPO, "topic", by="ann", body="Why and how")


def remark(world: World, pull: int, line: int, **more: Any) -> dict[str, Any]:
    sha = world.as_ann("GET", f"/pulls/{pull}")["head"]["sha"]
    body = {"body": "Is this right?", "commit_id": sha, "path": "till.py", "line": line, "side": "RIGHT", **more}
    return dict(world.as_ann("POST", f"/pulls/{pull}/comments", body))
