from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper import limits
from tests.unit.functions.support import WEBSOCKET_URL, Api
from tests.unit.logic.test_requests import SEED_000, SEED_001, SEED_001_WITHOUT_REPO, SEED_002

if TYPE_CHECKING:
    import io

BODY = {"task": "Add a logout button", "repo": "owner/repo"}


@pytest.mark.parametrize("body", [SEED_000, SEED_001, SEED_001_WITHOUT_REPO, SEED_002])
def test_the_bodies_of_the_seeds_start_runs(api: Api, body: dict[str, Any]) -> None:
    answer = api.call("POST", "/execute", body)
    run_id = answer.body["run_id"]
    path = f"/runs/{run_id}"
    assert answer.status == 202
    assert answer.body == {
        "success": True,
        "run_id": run_id,
        "execution_id": run_id,
        "request_id": "req-1",
        "status": "queued",
        "timestamp": "2026-01-01T12:00:00Z",
        "links": {
            "self": path,
            "events": f"{path}/events",
            "logs": f"{path}/logs",
            "diff": f"{path}/diff",
            "cancel": f"{path}/cancel",
            "websocket": WEBSOCKET_URL,
        },
    }
    assert list(api.rules.workflow.started) == [run_id]


def test_a_run_belongs_to_whom_the_authorizer_let_in(api: Api) -> None:
    run_id = api.call("POST", "/execute", BODY, user="carol").body["run_id"]
    assert api.rules.get(run_id).owner == "carol"


@pytest.mark.parametrize("path", ["/execute", "/tickets"])
def test_a_request_that_no_authorizer_has_seen_is_refused(api: Api, path: str) -> None:
    answer = api.call("POST", path, BODY, user=None)
    assert (answer.status, answer.error["type"]) == (401, "authentication_error")
    assert api.rules.workflow.started == {}


def test_the_github_token_goes_to_the_secrets_and_nowhere_else(api: Api, log: io.StringIO) -> None:
    answer = api.call("POST", "/execute", BODY, {"x-github-token": "ghs_topsecret"})
    run_id = answer.body["run_id"]
    assert api.rules.secrets.get(run_id) == {"github_token": "ghs_topsecret"}
    shown = json.dumps(api.call("GET", f"/runs/{run_id}/events").body) + log.getvalue()
    assert "answered" in shown
    assert "ghs_topsecret" not in shown + json.dumps(answer.body)


# what is wrong with the body


def test_every_wrong_field_is_named_as_the_caller_wrote_it(api: Api) -> None:
    body = {"task": "bug-fix", "params": {"task": "x", "nope": 1, "maxTurns": 0}, "extra": True}
    answer = api.call("POST", "/execute", body)
    assert (answer.status, answer.error["type"], answer.error["retryable"]) == (422, "validation_error", False)
    assert sorted(answer.fields) == ["extra", "params.maxTurns", "params.nope"]
    assert answer.error["request_id"] == "req-1"


def test_a_repository_that_is_none_is_named(api: Api) -> None:
    answer = api.call("POST", "/execute", {"task": "bug-fix", "params": {"task": "x", "repo": "../x"}})
    assert (answer.status, answer.fields) == (422, ["params.repo"])


@pytest.mark.parametrize("text", ["{", "{'task': 1}", '{"task": NaN}', "[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_what_is_no_json_is_a_400_about_the_body(api: Api, text: str) -> None:
    answer = api.call("POST", "/execute", text)
    assert (answer.status, answer.fields) == (400, ["body"])


@pytest.mark.parametrize("text", ["[]", '[{"task": "x"}]', '"task"', "5", "null", "true"])
def test_a_body_that_is_no_object_is_refused(api: Api, text: str) -> None:
    answer = api.call("POST", "/execute", text)
    assert (answer.status, answer.fields) == (422, ["body"])
    assert api.rules.workflow.started == {}


def test_a_missing_body_is_refused(api: Api) -> None:
    answer = api.call("POST", "/execute")
    assert (answer.status, answer.fields) == (422, ["body"])


@pytest.mark.parametrize("character", ["x", "ü"])
def test_a_body_over_256_kb_is_a_422_about_the_body(api: Api, character: str) -> None:
    text = json.dumps({"task": "x", "context": character * limits.MAX_BODY_BYTES}, ensure_ascii=False)
    answer = api.call("POST", "/execute", text)
    assert (answer.status, answer.fields) == (422, ["body"])


def test_a_form_is_refused_with_a_hint_at_the_header(api: Api) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    answer = api.call("POST", "/execute", BODY, form)
    assert (answer.status, answer.fields) == (400, ["content-type"])


@pytest.mark.parametrize("content_type", ["application/octet-stream", "text/plain", "multipart/form-data", "rubbish"])
def test_a_missing_body_is_asked_for_whatever_its_type_is_said_to_be(api: Api, content_type: str) -> None:
    answer = api.call("POST", "/execute", None, {"content-type": content_type})
    assert (answer.status, answer.fields) == (422, ["body"])


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON", " application/json"])
def test_json_is_known_by_any_spelling_of_its_type(api: Api, content_type: str) -> None:
    assert api.call("POST", "/execute", BODY, {"content-type": content_type}).status == 202


@pytest.mark.parametrize("header", ["idempotency-key", "x-github-token"])
def test_a_header_that_is_too_long_is_named(api: Api, header: str) -> None:
    answer = api.call("POST", "/execute", BODY, {header: "x" * 2000})
    assert (answer.status, answer.fields) == (422, [header])


# Idempotency-Key


def test_the_same_key_and_body_start_one_run(api: Api) -> None:
    answers = [api.call("POST", "/execute", BODY, {"idempotency-key": "k1"}) for _ in range(3)]
    assert [answer.status for answer in answers] == [202] * 3
    assert len({answer.body["run_id"] for answer in answers}) == 1
    assert len(api.rules.workflow.started) == 1


def test_the_same_key_in_another_spelling_of_the_same_body_is_the_same_run(api: Api) -> None:
    first = api.call("POST", "/execute", {"task": "x", "maxTurns": 5}, {"idempotency-key": "k1"})
    second = api.call("POST", "/execute", {"task": "x", "options": {"max_turns": 5}}, {"idempotency-key": "k1"})
    assert first.body["run_id"] == second.body["run_id"]


def test_the_same_key_with_another_body_is_a_conflict(api: Api) -> None:
    api.call("POST", "/execute", BODY, {"idempotency-key": "k1"})
    answer = api.call("POST", "/execute", {"task": "another"}, {"idempotency-key": "k1"})
    assert (answer.status, answer.error["type"], answer.error["retryable"]) == (409, "conflict", False)
    assert len(api.rules.workflow.started) == 1


def test_the_same_key_of_another_owner_is_another_run(api: Api) -> None:
    runs = {
        api.call("POST", "/execute", BODY, {"idempotency-key": "k1"}, user).body["run_id"] for user in ("ann", "bob")
    }
    assert len(runs) == 2


def test_a_key_that_is_being_worked_on_is_a_conflict_to_try_again(api: Api) -> None:
    inner: list[tuple[int, bool]] = []
    start = api.rules.workflow.start

    def start_while_the_same_request_comes_again(run_id: str, payload: dict[str, Any]) -> None:
        again = api.call("POST", "/execute", BODY, {"idempotency-key": "k1"})
        inner.append((again.status, again.error["retryable"]))
        start(run_id, payload)

    api.rules.workflow.start = start_while_the_same_request_comes_again  # type: ignore[method-assign,assignment]
    assert api.call("POST", "/execute", BODY, {"idempotency-key": "k1"}).status == 202
    assert inner == [(409, True)]


def test_a_start_that_failed_is_a_503_and_the_key_can_be_used_again(api: Api) -> None:
    def broken(run_id: str, payload: dict[str, Any]) -> None:
        raise ConnectionError

    workflow = api.rules.workflow
    workflow.start = broken  # type: ignore[method-assign,assignment]
    answer = api.call("POST", "/execute", BODY, {"idempotency-key": "k1"})
    assert (answer.status, answer.error["retryable"]) == (503, True)
    del workflow.start
    again = api.call("POST", "/execute", BODY, {"idempotency-key": "k1"})
    assert (again.status, list(workflow.started)) == (202, [again.body["run_id"]])


# Prefer


def test_a_run_that_ends_in_time_is_answered_whole(api: Api) -> None:
    def finish(_: float) -> None:
        (run_id,) = api.rules.workflow.started
        api.rules.runs.change(run_id, allowed=("queued",), changes={"status": "completed"})

    object.__setattr__(api.world, "sleep", finish)
    answer = api.call("POST", "/execute", BODY, {"prefer": "respond-async, wait=10"})
    assert (answer.status, answer.body["run"]["status"]) == (200, "completed")


def test_a_run_that_takes_longer_is_answered_as_started(api: Api) -> None:
    answer = api.call("POST", "/execute", BODY, {"prefer": "wait=3"})
    assert (answer.status, answer.body["status"], sum(api.pauses)) == (202, "queued", 3)


@pytest.mark.parametrize(
    ("prefer", "seconds"), [("wait=999", 25), ("wait=0", 0), ("wait=-1", 0), ("wait=soon", 0), ("return=minimal", 0)]
)
def test_a_preference_is_only_a_preference(api: Api, prefer: str, seconds: int) -> None:
    assert api.call("POST", "/execute", BODY, {"prefer": prefer}).status == 202
    assert sum(api.pauses) == seconds


def test_a_started_run_is_counted(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.call("POST", "/execute", BODY)
    metrics = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    assert [metric["RunsStarted"] for metric in metrics] == [[1.0]]
    assert metrics[0]["service"] == "sandpiper-test"
