from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from api.health import REMEMBERED_SECONDS, Health, health_of
from api.settings import Settings

if TYPE_CHECKING:
    import io

    from tests.unit.functions.support import Api

ENVIRONMENT = {
    "RUNS_TABLE": "runs",
    "EVENTS_TABLE": "events",
    "CONNECTIONS_TABLE": "connections",
    "IDEMPOTENCY_TABLE": "idempotency",
    "ARTIFACTS_BUCKET": "bucket",
    "STATE_MACHINE_ARN": "arn:state-machine",
    "RUN_SECRETS_KEY_ID": "key",
    "MODEL_KEY_SECRET_ARN": "arn:secret",
    "ANTHROPIC_BASE_URL": "https://api.anthropic.com",
    "MODEL_PROVIDER": "anthropic",
    "GITHUB_URL": "https://github.com",
    "GITHUB_API_URL": "https://api.github.com",
    "ALLOWED_REPO_URLS": "",
    "WEBSOCKET_URL": "wss://x",
    "VERSION": "1",
    "STARTS_PER_MINUTE": "4",
    "STARTS_PER_DAY": "25",
    "MONTHLY_USD": "100",
    "CONCURRENCY": "2",
}


def fail() -> bool:
    message = "away"
    raise ConnectionError(message)


def test_health_needs_no_token_and_says_what_was_looked_at(api: Api) -> None:
    answer = api.call("GET", "/health", user=None)
    assert (answer.status, answer.body) == (
        200,
        {
            "status": "healthy",
            "service": "sandpiper",
            "timestamp": "2026-01-01T12:00:00Z",
            "version": "1.2.3",
            "checks": {"database": True, "storage": True, "model": True, "github": "configured"},
        },
    )


@pytest.mark.parametrize("broken", ["database", "storage", "model"])
def test_one_failing_check_makes_it_degraded_and_is_named(api: Api, broken: str) -> None:
    setattr(api.health, broken, fail)
    answer = api.call("GET", "/health").body
    assert answer["status"] == "degraded"
    assert [name for name, good in answer["checks"].items() if good is False] == [broken]


def test_many_questions_in_a_moment_are_one_look() -> None:
    looks: list[int] = []
    moment = 0.0
    health = Health(lambda: looks.append(1), lambda: None, lambda: True, "https://g", now=lambda: moment)
    for _ in range(5):
        health.checks()
    assert len(looks) == 1
    moment = REMEMBERED_SECONDS
    health.checks()
    assert len(looks) == 2


class Secrets:
    def __init__(self, value: str) -> None:
        self._value = value

    def get_secret_value(self, **_: str) -> dict[str, str]:
        return {"SecretString": self._value}


class Dynamo:
    def get_item(self, **_: object) -> dict[str, object]:
        return {}


class Bucket:
    def head_bucket(self, **_: str) -> dict[str, object]:
        return {}


@pytest.mark.parametrize(
    ("key", "changed", "good"),
    [
        ("sk-ant-1", {}, True),
        ("set-me", {}, False),
        (" ", {}, False),
        ("set-me", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9999"}, True),
        ("set-me", {"MODEL_PROVIDER": "bedrock"}, True),
    ],
)
def test_a_model_needs_a_real_key_or_a_place_of_ones_own(key: str, changed: dict[str, str], *, good: bool) -> None:
    settings = Settings.read({**ENVIRONMENT, **changed})
    health = health_of(settings, Dynamo(), Bucket(), Secrets(key))  # type: ignore[arg-type]
    assert health.checks().model is good


def test_allowed_repository_urls_are_a_list_in_the_environment() -> None:
    settings = Settings.read({**ENVIRONMENT, "ALLOWED_REPO_URLS": "http://a/, http://b/ ,"})
    assert settings.allowed_repo_urls == ("http://a/", "http://b/")


def test_a_missing_setting_is_named() -> None:
    with pytest.raises(KeyError, match="RUNS_TABLE"):
        Settings.read({})


def test_an_unknown_path_is_a_404_in_the_one_shape(api: Api) -> None:
    answer = api.call("GET", "/nothing/here")
    assert (answer.status, answer.error["type"], answer.error["request_id"]) == (404, "not_found", "req-1")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [("DELETE", "/runs", "GET"), ("GET", "/execute", "POST"), ("PUT", "/runs/run-1/cancel", "POST")],
)
def test_a_wrong_method_is_a_405_that_names_the_right_one(api: Api, method: str, path: str, allow: str) -> None:
    answer = api.call(method, path)
    assert (answer.status, answer.headers["allow"]) == (405, allow)


def test_what_nobody_expected_is_a_500_that_tells_nothing_but_the_request_id(
    api: Api, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object, **__: object) -> None:
        message = "internal detail"
        raise RuntimeError(message)

    monkeypatch.setattr(api.rules.runs, "list_by_owner", explode)
    answer = api.call("GET", "/runs")
    assert (answer.status, answer.error["type"], answer.error["request_id"]) == (500, "internal_error", "req-1")
    assert "internal detail" not in json.dumps(answer.body)
    logged = [json.loads(line) for line in log.getvalue().splitlines()]
    assert any("internal detail" in line.get("exception", "") for line in logged)


def test_every_request_is_logged_with_its_route_and_status(api: Api, log: io.StringIO) -> None:
    run_id = api.call("POST", "/execute", {"task": "x"}).body["run_id"]
    line = json.loads(log.getvalue().splitlines()[-1])
    assert (line["message"], line["path"], line["status"], line["run_id"]) == ("answered", "/execute", 202, run_id)


def test_the_description_is_served_to_everybody(api: Api) -> None:
    answer = api.call("GET", "/openapi.json", user=None)
    assert (answer.status, answer.body["info"]["version"]) == (200, "1.2.3")
