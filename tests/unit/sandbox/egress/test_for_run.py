from __future__ import annotations

import pytest
from pydantic import ValidationError

from sandbox_task.isolation.egress.for_run import policy_for_run
from sandbox_task.options import parse_options
from sandbox_task.settings import Settings, read_settings
from sandpiper.errors import RunError

REQUIRED = ("RUN_ID", "TASK_TOKEN", "RUNS_TABLE", "EVENTS_TABLE", "ARTIFACTS_BUCKET", "RUN_SECRETS_KEY_ID")
NO_CLIENTS = {"PATH": "", "HOME": "/nowhere"}


def settings(**variables: str) -> Settings:
    return read_settings(dict.fromkeys(REQUIRED, "x") | {"ATTEMPT": "1"} | variables)


def test_a_run_reaches_its_registries_its_github_and_what_it_asks_for() -> None:
    given = settings(EGRESS_REGISTRIES='{"rust": ["crates.example"]}', GITHUB_URL="https://github.example")
    policy = policy_for_run(given, paths=["Cargo.toml"], egress=["api.example"], environ=NO_CLIENTS)
    hosts = ("crates.example", "github.example", "api.example")
    assert [policy.refusal(host, 443) for host in hosts] == [None, None, None]
    assert policy.refusal("elsewhere.example", 443)


def test_the_operators_list_is_the_most_that_there_is() -> None:
    given = settings(EGRESS_ALLOWED="a.example, *.b.example", EGRESS_PRIVATE="10.0.0.0/8,c.example")
    policy = policy_for_run(given, paths=[], egress=["a.example", "x.example"], environ=NO_CLIENTS)
    assert policy.refusal("a.example", 443) is None
    assert policy.refusal("x.example", 443)
    assert policy.refusal("github.com", 443)


@pytest.mark.parametrize(
    "variables",
    [{"EGRESS_ALLOWED": "10.0.0.1"}, {"EGRESS_PRIVATE": "10.0.0.0/99"}, {"EGRESS_REGISTRIES": '{"rust": ["a b"]}'}],
)
def test_a_wrong_setting_is_said_at_the_start(variables: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        settings(**variables)


def test_a_wrong_wish_of_the_repository_is_said_with_its_place() -> None:
    with pytest.raises(RunError, match=r"\.sandpiper\.yml is wrong at egress: .*'169\.254\.169\.254' is no name"):
        parse_options(b"egress: ['169.254.169.254']")
    assert parse_options(b"egress: a.example").egress == ("a.example",)
