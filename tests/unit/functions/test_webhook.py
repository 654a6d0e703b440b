"""The webhook function, called as HTTP API calls it, with GitHub's own payloads."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper import limits
from sandpiper.logic.github.deliveries import Delivery, Triggers, run_id_of
from sandpiper.logic.github.signatures import is_proven, signature
from tests.unit.logic.github.payloads import comment, payload
from webhook import handler as webhook

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "It's a Secret to Everybody"


@pytest.fixture
def handed_on(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    asked: list[dict[str, Any]] = []
    made = webhook.World(secret=lambda: SECRET, triggers=Triggers("sandpiper", ""), hand_on=asked.append)
    monkeypatch.setattr(webhook, "world", lambda: made)
    return asked


def send(
    body: bytes,
    name: str = "issue_comment",
    /,
    *,
    signed: Callable[[bytes], str | None] | None = None,
    app_id: str | None = None,
    **event: Any,
) -> tuple[int, dict[str, Any]]:
    sign = signed or (lambda raw: signature(SECRET, raw))
    headers = {"x-github-event": name, "x-github-delivery": "d-1", "x-hub-signature-256": sign(body)}
    headers["x-github-hook-installation-target-id"] = app_id
    given = {name: value for name, value in headers.items() if value is not None}
    answer = webhook.handler({"headers": given, "body": body.decode(errors="surrogateescape"), **event}, None)
    return answer["statusCode"], json.loads(answer["body"])


def raw(made: dict[str, Any]) -> bytes:
    return json.dumps(made, ensure_ascii=False).encode()


def test_a_command_is_handed_on_with_a_proof_and_answered_with_the_run(handed_on: list[dict[str, Any]]) -> None:
    status, answer = send(raw(comment("/implement a logout button 🎉")))
    (asked,) = handed_on
    delivery = Delivery(**json.loads(asked["delivery"]))
    assert (status, answer) == (202, {"status": "accepted", "run_id": run_id_of(delivery)})
    assert (delivery.id, delivery.verb, delivery.text) == ("d-1", "implement", "a logout button 🎉")
    assert asked["action"] == "delivery"
    assert is_proven(SECRET, asked["delivery"], asked["proof"])


def test_the_checks_of_the_app_itself_are_not_handed_on(handed_on: list[dict[str, Any]]) -> None:
    suite = payload("check_suite.completed")
    ours = str(suite["check_suite"]["app"]["id"])
    ignored = {"status": "ignored", "reason": "a check of our own"}
    assert send(raw(suite), "check_suite", app_id=ours) == (202, ignored)
    assert send(raw(suite), "check_suite", app_id="1")[1]["status"] == "accepted"
    assert len(handed_on) == 1


def test_a_body_that_came_in_base64_is_checked_as_it_was_sent(handed_on: list[dict[str, Any]]) -> None:
    body = raw(comment("/fix"))
    status, _ = send(body, body=base64.b64encode(body).decode(), isBase64Encoded=True)
    assert status == 202
    assert handed_on


@pytest.mark.parametrize("wrong", [None, "", "sha256=" + "0" * 64, "sha1=abc"])
def test_without_the_right_signature_nothing_is_read_and_nothing_handed_on(
    handed_on: list[dict[str, Any]], wrong: str | None
) -> None:
    status, answer = send(raw(comment("/fix")), signed=lambda _: wrong)
    assert (status, answer["error"]["type"]) == (401, "authentication_error")
    assert send(b"{no json", signed=lambda _: wrong)[0] == 401
    assert not handed_on


def test_a_signature_of_another_body_is_wrong(handed_on: list[dict[str, Any]]) -> None:
    assert send(raw(comment("/fix")), signed=lambda _: signature(SECRET, raw(comment("/test"))))[0] == 401
    assert not handed_on


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_malformed_json_with_the_right_signature_is_refused(handed_on: list[dict[str, Any]], body: bytes) -> None:
    encoded = {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
    status, answer = send(body, **encoded)
    assert (status, answer["error"]["message"]) == (400, "The body is not valid JSON.")
    assert not handed_on


def test_json_that_is_no_such_event_is_refused(handed_on: list[dict[str, Any]]) -> None:
    assert send(b"[]")[0] == 400
    assert send(b"{}")[0] == 400
    assert not handed_on


def test_more_than_github_sends_is_refused_unread() -> None:
    assert send(b"x" * (limits.MAX_WEBHOOK_BYTES + 1), signed=lambda _: None)[0] == 413


def test_a_ping_is_answered(handed_on: list[dict[str, Any]]) -> None:
    assert send(raw(payload("ping")), "ping") == (200, {"status": "pong"})
    assert not handed_on


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("star", {"action": "created"}),
        ("issue_comment", comment("thanks!")),
        ("installation", payload("installation.created")),
        ("issues", payload("issues.labeled")),
    ],
)
def test_what_asks_for_nothing_is_taken_and_ignored(
    handed_on: list[dict[str, Any]], name: str, body: dict[str, Any]
) -> None:
    status, answer = send(raw(body), name)
    assert (status, answer["status"]) == (202, "ignored")
    assert not handed_on


@pytest.mark.parametrize("given", [{}, {"x-github-delivery": "../x"}, {"x-github-delivery": "a" * 101}])
def test_a_delivery_without_an_id_could_not_be_told_from_another(
    handed_on: list[dict[str, Any]], given: dict[str, str]
) -> None:
    body = raw(comment("/fix"))
    headers = {"x-github-event": "issue_comment", "x-hub-signature-256": signature(SECRET, body), **given}
    assert webhook.handler({"headers": headers, "body": body.decode()}, None)["statusCode"] == 400
    assert not handed_on


def test_a_wish_for_a_run_in_progress_names_no_new_one(handed_on: list[dict[str, Any]]) -> None:
    assert send(raw(comment("/cancel"))) == (202, {"status": "accepted"})


def test_the_longest_comment_fits_into_what_a_function_takes(handed_on: list[dict[str, Any]]) -> None:
    send(raw(comment("/implement " + "🎉" * 32_700)))
    send(raw(comment("/implement " + '"\\' * 32_700)))
    sizes = [len(json.dumps(asked, ensure_ascii=False).encode()) for asked in handed_on]
    assert max(sizes) < limits.MAX_DELIVERY_BYTES


def test_the_log_holds_neither_the_secret_nor_the_words_of_a_comment(
    handed_on: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    send(raw(comment("/implement my-private-idea")))
    logged = capsys.readouterr().out
    assert '"delivery": "d-1"' in logged
    assert "my-private-idea" not in logged
    assert SECRET not in logged
