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
    policy = policy_for_run(given, requested=["api.example"], paths=["Cargo.toml"], egress=[], environ=NO_CLIENTS)
    hosts = ("crates.example", "github.example", "api.example")
    assert [policy.refusal(host, 443) for host in hosts] == [None, None, None]
    assert policy.refusal("elsewhere.example", 443)


def test_the_operators_list_is_the_most_that_there_is() -> None:
    given = settings(EGRESS_ALLOWED="a.example, *.b.example", EGRESS_PRIVATE="10.0.0.0/8,c.example")
    policy = policy_for_run(given, requested=["x.example"], paths=[], egress=["a.example"], environ=NO_CLIENTS)
    assert policy.refusal("a.example", 443) is None
    assert policy.refusal("x.example", 443)
    assert policy.refusal("github.com", 443)


def test_what_a_repository_asks_for_opens_nothing_unless_the_operator_has_set_a_bound() -> None:
    asked = {"requested": ["person.example"], "paths": [], "egress": ["repository.example"], "environ": NO_CLIENTS}
    by_default = policy_for_run(settings(), **asked)  # type: ignore[arg-type]
    assert by_default.refusal("person.example", 443) is None
    assert "the operator does not allow" in str(by_default.refusal("repository.example", 443))
    bounded = policy_for_run(settings(EGRESS_ALLOWED="*"), **asked)  # type: ignore[arg-type]
    assert [bounded.refusal(f"{who}.example", 443) for who in ("person", "repository")] == [None, None]


def test_a_person_opens_one_host_and_never_more_than_the_operator_allows() -> None:
    closed = policy_for_run(settings(), (), paths=[], egress=[], environ=NO_CLIENTS)
    opened = closed.opened("a.example", 443)
    assert [bool(policy.refusal("a.example", 443)) for policy in (closed, opened)] == [True, False]
    assert opened.refusal("b.example", 443)
    assert opened.refusal("a.example", 8443)
    bounded = policy_for_run(settings(EGRESS_ALLOWED="b.example"), (), paths=[], egress=[], environ=NO_CLIENTS)
    assert bounded.opened("a.example", 443).refusal("a.example", 443)
    assert bounded.opened("b.example", 443).refusal("b.example", 443) is None


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
