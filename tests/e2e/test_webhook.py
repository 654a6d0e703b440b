"""GitHub's webhook through the front door: who is let in, and what a stranger leaves behind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from sandpiper.logic.github.signatures import signature
from tests.unit.logic.github.payloads import comment, payload

if TYPE_CHECKING:
    from tests.e2e.conftest import Stack


@pytest.fixture(scope="module")
def secret(stack: Stack) -> str:
    """Made up by the stack itself: nobody has set one."""
    found = stack.aws("secretsmanager").get_secret_value(SecretId=stack.outputs["GitHubWebhookSecretArn"])
    return str(found["SecretString"])


def send(stack: Stack, body: bytes, name: str, signed: str | None) -> tuple[int, dict[str, Any]]:
    headers = {"Content-Type": "application/json", "X-GitHub-Event": name, "X-GitHub-Delivery": "e2e-1"}
    signatures = {"X-Hub-Signature-256": signed} if signed else {}
    answer = httpx.post(f"{stack.api_url}/github/webhook", content=body, headers=headers | signatures, timeout=30)
    return answer.status_code, answer.json()


def test_a_webhook_is_answered_by_what_it_is(stack: Stack, secret: str) -> None:
    ping, star = json.dumps(payload("ping")).encode(), b'{"action": "created"}'
    assert send(stack, ping, "ping", signature(secret, ping)) == (200, {"status": "pong"})
    assert send(stack, star, "star", signature(secret, star))[0] == 202
    assert send(stack, b"{", "issue_comment", signature(secret, b"{"))[0] == 400
    greeting = json.dumps(comment("grüße 🎉"), ensure_ascii=False).encode()
    ignored = {"status": "ignored", "reason": "no command"}
    assert send(stack, greeting, "issue_comment", signature(secret, greeting)) == (202, ignored)


@pytest.mark.parametrize("signed", [None, "sha256=" + "0" * 64, "with the placeholder"])
def test_a_stranger_is_refused_and_nothing_is_stored(stack: Stack, signed: str | None) -> None:
    body = json.dumps(comment("/implement a back door")).encode()
    given = signature("set-me", body) if signed == "with the placeholder" else signed
    status, answer = send(stack, body, "issue_comment", given)
    assert (status, answer["error"]["type"]) == (401, "authentication_error")
    with stack.client("github:ann") as ann:
        assert ann.get("/runs").json()["runs"] == []


def test_more_than_github_sends_is_refused(stack: Stack) -> None:
    assert send(stack, b"x" * (26 * 1024 * 1024), "issue_comment", None)[0] == 413
