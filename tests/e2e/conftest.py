"""One local stack for all end-to-end tests: real HTTP, sockets, git and processes, IAM enforced.

def test_…(stack):
    stack.model.add({...})                       # what the scripted model says, chosen by the task's words
    stack.client().post("/execute", json={...})  # as user `ann`
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import jwt
import pytest

from sandpiper_local import aws
from sandpiper_local.fake_github.client import GitHubAdmin
from sandpiper_local.scripted_model.runner import ScriptedModel
from sandpiper_local.stack import UpOptions, background
from tests.e2e.hub import CHECKED, make_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.hub import Place

JWT_SECRET = "a-secret-for-end-to-end-tests-only-0123456789"
APPROVAL_WAIT_SECONDS = 20  # enough to answer in time, and few enough to wait for
MODEL_KEY = "sk-model-key-of-the-end-to-end-tests"
# these files go first, so that short ones fill up the end and no worker idles there
LONGEST = {
    *("test_openapi", "test_recovery", "test_approvals", "test_local_stack", "test_demo", "test_cli"),
    *("test_kills", "test_outages", "test_one_life"),
}


@pytest.hookimpl(trylast=True)  # the rest of the order stays random
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.stem not in LONGEST)


@dataclass(frozen=True)
class Stack:
    info: dict[str, Any]
    model: ScriptedModel
    state_dir: Path
    github: GitHubAdmin | None = None  # of the session's stack: what it asks of GitHub goes there
    _clients: dict[str, Any] = field(default_factory=dict)

    @property
    def api_url(self) -> str:
        return str(self.info["api_url"])

    @property
    def ws_url(self) -> str:
        return str(self.info["ws_url"])

    @property
    def outputs(self) -> dict[str, str]:
        return dict(self.info["outputs"])

    def aws(self, service: str) -> Any:
        """The client of a service that talks to the embedded AWS as root. Making one takes a while: it is kept."""
        if service not in self._clients:
            where = self.info["aws_endpoint"], self.info["region"], self.info["credentials"]
            self._clients[service] = aws.client(service, *where)
        return self._clients[service]

    def token(self, user: str = "ann", *, secret: str = JWT_SECRET, algorithm: str = "HS256", **claims: Any) -> str:
        now = int(time.time())
        standard = {"sub": user, "org": "acme", "scope": "runs:read runs:write", "iat": now, "exp": now + 3600}
        return jwt.encode(standard | claims, secret, algorithm)

    def client(self, user: str = "ann", *, token: str | None = None) -> httpx.Client:
        """An HTTP client of the API. Use it as a context manager."""
        headers = {"Authorization": f"Bearer {token or self.token(user)}"}
        return httpx.Client(base_url=self.api_url, headers=headers, timeout=40)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    state_dir = tmp_path_factory.mktemp("stack")
    with ScriptedModel() as model:
        environment = os.environ | {
            "ANTHROPIC_BASE_URL": model.url,
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": model.url,
            "ANTHROPIC_API_KEY": MODEL_KEY,
            "SANDBOX_JWT_SECRET": JWT_SECRET,
            "APPROVAL_WAIT_SECONDS": str(APPROVAL_WAIT_SECONDS),
        }
        options = UpOptions(port=0, state_dir=state_dir, environment=environment, github="fake")
        with background(options) as info, contextlib.closing(GitHubAdmin(info["github_url"])) as github:
            yield Stack(info, model, state_dir, github)


@pytest.fixture
def new_place(stack: Stack) -> Iterator[Callable[..., Place]]:
    """Makes places on the fake GitHub: `new_place()`, or with files of its own."""
    with contextlib.ExitStack() as closing:
        yield lambda files=CHECKED: make_place(stack, closing, files)


@pytest.fixture
def place(new_place: Callable[..., Place]) -> Place:
    return new_place()
