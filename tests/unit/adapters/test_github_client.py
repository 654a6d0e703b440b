"""GitHub's client on loopback: where it goes, what it carries, and what it makes of failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandpiper.adapters.github.checks import Checks, Verdict
from sandpiper.adapters.github.client import GitHubClient
from sandpiper.errors import GitHubError
from tests.unit.sandbox.github.stub import Refusal, StubGitHub

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def github() -> Iterator[StubGitHub]:
    with StubGitHub() as github:
        yield github


@pytest.fixture
def client(github: StubGitHub) -> GitHubClient:
    return GitHubClient(github.url, lambda: "secret-token", sleep=lambda _seconds: None)


def test_the_end_of_a_log_is_fetched_where_github_points_and_the_token_stays_behind(
    client: GitHubClient, github: StubGitHub
) -> None:
    github.logs[5] = "x" * 100_000 + "the end"
    assert client.tail("/repos/o/r/actions/jobs/5/logs", at_most=10) == b"xxxthe end"
    assert [(asked.path, asked.token) for asked in github.asked] == [
        ("/repos/o/r/actions/jobs/5/logs", "secret-token"),
        ("/logs/5", ""),
    ]


def test_a_log_that_has_gone_is_an_error_in_words(client: GitHubClient, github: StubGitHub) -> None:
    github.refusals.append(Refusal("GET", "/logs/5", 410, "Gone"))
    with pytest.raises(GitHubError, match="leads to answered 410"):
        client.tail("/repos/o/r/actions/jobs/5/logs", at_most=10)


@pytest.mark.parametrize("root", ["", "/api/v3"])
def test_graphql_is_found_on_github_and_on_github_enterprise(github: StubGitHub, root: str) -> None:
    client = GitHubClient(f"{github.url}{root}", lambda: "t")
    page = client.graphql("query { threads }", {})["repository"]["pullRequest"]["reviewThreads"]
    assert page["nodes"] == []


def test_a_query_that_github_answers_with_errors_is_an_error(client: GitHubClient, github: StubGitHub) -> None:
    github.answer = lambda _asked: (200, {"errors": [{"message": "Could not resolve"}]})  # type: ignore[method-assign]
    with pytest.raises(GitHubError, match="Could not resolve"):
        client.graphql("query { x }", {})


def test_a_check_that_was_made_before_is_found_by_its_run(client: GitHubClient, github: StubGitHub) -> None:
    checks = Checks(client, "o/r", "abc")
    made = checks.report(Verdict(name="n", conclusion="success", title="t", summary="s"), external_id="run-1")
    assert checks.find("n", external_id="run-1") == made
    assert checks.find("n", external_id="run-2") is None


def test_statuses_of_the_older_kind_count_and_a_token_that_may_not_read_them_does_without(
    client: GitHubClient, github: StubGitHub
) -> None:
    checks = Checks(client, "o/r", "abc")
    github.statuses.append({"id": 1, "context": "ci/old", "state": "failure", "description": "broken"})
    (found,) = checks.runs()
    assert (found.name, found.is_done, found.is_red, checks.log(found)) == ("ci/old", True, True, "broken")
    github.refusals.append(Refusal("GET", "/repos/o/r/commits/abc/status", 403, "not accessible"))
    assert checks.runs() == []
