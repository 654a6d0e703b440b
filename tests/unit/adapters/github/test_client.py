"""How GitHub's API is spoken to: what is repeated, what is waited for, what is told, and who gets the token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandpiper import limits
from sandpiper.adapters.github.client import GitHubClient
from sandpiper.errors import GitHubError
from tests.unit.adapters.github.loopback import Loopback, Reply, serving

if TYPE_CHECKING:
    from collections.abc import Callable

OK = Reply(200, {"id": 1})
BUSY = Reply(502, {"message": "Server Error"})


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def client(github: Loopback, pauses: list[float]) -> GitHubClient:
    return GitHubClient(github.url, lambda: "tok", sleep=pauses.append)


def test_a_call_carries_the_token_of_that_moment_and_the_version(github: Loopback) -> None:
    tokens = iter(["one", "two"])
    client = GitHubClient(github.url, lambda: next(tokens))
    github.reply("GET /x", OK)
    assert [client.call("GET", "/x"), client.call("GET", "/x")] == [{"id": 1}, {"id": 1}]
    assert [asked.headers["authorization"] for asked in github.asked] == ["Bearer one", "Bearer two"]
    assert github.asked[0].headers["x-github-api-version"] == "2022-11-28"


def test_a_body_and_a_query_are_sent_together(github: Loopback, client: GitHubClient) -> None:
    github.reply("POST /x", OK)
    client.call("POST", "/x", {"a": "é"}, query={"q": "a b"})
    assert (github.asked[0].path, github.asked[0].body) == ("/x?q=a+b", {"a": "é"})


def test_an_empty_answer_is_none(github: Loopback, client: GitHubClient) -> None:
    github.reply("DELETE /x", Reply(204))
    assert client.call("DELETE", "/x") is None


@pytest.mark.parametrize("trouble", [BUSY, Reply(hangs_up=True)])
def test_what_may_be_repeated_is_repeated(
    github: Loopback, client: GitHubClient, pauses: list[float], trouble: Reply
) -> None:
    github.reply("GET /x", trouble, trouble, OK)
    assert client.call("GET", "/x") == {"id": 1}
    assert pauses == list(limits.GITHUB_PAUSES_SECONDS[:2])


@pytest.mark.parametrize("trouble", [BUSY, Reply(hangs_up=True)])
def test_a_post_may_have_been_done_and_is_not_repeated(
    github: Loopback, client: GitHubClient, pauses: list[float], trouble: Reply
) -> None:
    github.reply("POST /x", trouble, OK)
    with pytest.raises(GitHubError) as raised:
        client.call("POST", "/x", {})
    assert raised.value.retryable
    assert not pauses


def test_a_post_that_is_said_to_be_repeatable_is_repeated(github: Loopback, client: GitHubClient) -> None:
    github.reply("POST /x", BUSY, OK)
    assert client.call("POST", "/x", {}, repeatable=True) == {"id": 1}


def test_it_is_given_up_some_time(github: Loopback, client: GitHubClient, pauses: list[float]) -> None:
    github.reply("GET /x", BUSY)
    with pytest.raises(GitHubError, match="502: Server Error") as raised:
        client.call("GET", "/x")
    assert (raised.value.code, raised.value.retryable) == (502, True)
    assert pauses == list(limits.GITHUB_PAUSES_SECONDS)


@pytest.mark.parametrize(
    ("headers", "words", "waits"),
    [
        ({"Retry-After": "7"}, "", lambda wait: wait == 7),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000000"}, "", lambda wait: wait == 0),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "soon"}, "", lambda wait: wait == 60),
        ({}, "You have exceeded a secondary rate limit.", lambda wait: wait == 60),
    ],
)
def test_a_rate_limit_is_waited_for_even_with_a_post(
    github: Loopback, pauses: list[float], headers: dict[str, str], words: str, waits: Callable[[float], bool]
) -> None:
    client = GitHubClient(github.url, lambda: "tok", sleep=pauses.append)
    limited = [Reply(status, {"message": words or "limited"}, headers) for status in (403, 429)]
    github.reply("POST /x", *limited, OK)
    assert client.call("POST", "/x", {}) == {"id": 1}
    assert len(pauses) == 2
    assert all(map(waits, pauses))


@pytest.mark.parametrize(
    "headers", [{"Retry-After": "3600"}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4102444800"}]
)
def test_a_rate_limit_that_is_too_long_is_told_instead(
    github: Loopback, client: GitHubClient, pauses: list[float], headers: dict[str, str]
) -> None:
    github.reply("GET /x", Reply(403, {"message": "API rate limit exceeded"}, headers))
    with pytest.raises(GitHubError, match="API rate limit exceeded") as raised:
        client.call("GET", "/x")
    assert raised.value.retryable
    assert not pauses


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422])
def test_a_refusal_is_told_in_githubs_words_and_not_repeated(
    github: Loopback, client: GitHubClient, status: int
) -> None:
    github.reply("GET /x", Reply(status, {"message": "No such thing"}), OK)
    with pytest.raises(GitHubError, match=f"{status}: No such thing") as raised:
        client.call("GET", "/x")
    assert (raised.value.code, raised.value.retryable) == (status, False)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_that_may_pass_is_waited_out_even_with_a_post(
    github: Loopback, pauses: list[float], status: int
) -> None:
    refused: list[int] = []
    client = GitHubClient(
        github.url, lambda: "tok", sleep=pauses.append, may_go_better=lambda code: not refused.append(code)
    )
    github.reply("POST /x", Reply(status, {"message": "Bad credentials"}), OK)
    assert client.call("POST", "/x", {}) == {"id": 1}
    assert (refused, pauses) == ([status], [limits.GITHUB_PAUSES_SECONDS[0]])


@pytest.mark.parametrize(
    "limited",
    [Reply(429, {"message": "Too many"}), Reply(403, {"message": "You have triggered an abuse detection mechanism."})],
)
def test_a_limit_is_known_without_a_number_and_by_its_older_name(
    github: Loopback, client: GitHubClient, pauses: list[float], limited: Reply
) -> None:
    github.reply("POST /x", limited, OK)
    assert client.call("POST", "/x", {}) == {"id": 1}
    assert pauses == [limits.GITHUB_SECONDARY_SECONDS]


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ([{"resource": "PullRequest", "code": "custom", "message": "No commits between a and b"}],
         "Validation Failed: No commits between a and b"),
        ([{"resource": "PullRequest", "field": "head", "code": "invalid"}, "Body is required"],
         "Validation Failed: head invalid; Body is required"),
        (None, "Validation Failed$"),
    ],
)  # fmt: skip
def test_what_exactly_github_finds_wrong_is_told(
    github: Loopback, client: GitHubClient, errors: Any, told: str
) -> None:
    github.reply("POST /x", Reply(422, {"message": "Validation Failed", "errors": errors}))
    with pytest.raises(GitHubError, match=told):
        client.call("POST", "/x", {})


def test_an_answer_that_is_no_json_is_told_as_such(github: Loopback, client: GitHubClient) -> None:
    github.reply("GET /x", Reply(200, b"<html>"))
    with pytest.raises(GitHubError, match="no JSON"):
        client.call("GET", "/x")


def test_nobody_at_home_is_told_as_such(pauses: list[float]) -> None:
    with serving() as gone:
        url = gone.url
    with pytest.raises(GitHubError, match="did not answer GET /x") as raised:
        GitHubClient(url, lambda: "tok", sleep=pauses.append).call("GET", "/x")
    assert raised.value.code == 0


def test_a_renamed_repository_is_found_where_it_is_now(github: Loopback, client: GitHubClient) -> None:
    github.reply("POST /repos/old", Reply(307, {"message": "Moved"}, {"Location": f"{github.url}/repositories/1"}))
    github.reply("POST /repositories/1", OK)
    assert client.call("POST", "/repos/old", {"a": 1}) == {"id": 1}
    assert (github.asked[1].body, github.asked[1].headers["authorization"]) == ({"a": 1}, "Bearer tok")


def test_the_token_goes_to_no_other_host(github: Loopback, client: GitHubClient) -> None:
    with serving() as elsewhere:
        elsewhere.reply("GET /log", OK)
        github.reply("GET /logs", Reply(302, None, {"Location": f"{elsewhere.url}/log"}))
        assert client.call("GET", "/logs") == {"id": 1}
        assert "authorization" not in elsewhere.asked[0].headers


def test_nothing_is_sent_to_another_host_but_a_question(github: Loopback, client: GitHubClient) -> None:
    with serving() as elsewhere:
        github.reply("POST /x", Reply(307, None, {"Location": f"{elsewhere.url}/x"}))
        with pytest.raises(GitHubError, match="307"):
            client.call("POST", "/x", {"a": 1})
        assert not elsewhere.asked


def following(github: Loopback, query: str, host: str = "") -> dict[str, str]:
    """As GitHub says it, which calls a repository by its number there."""
    root = f"{host or github.url}/repositories/7"
    return {"Link": f'<{root}/x?{query}>; rel="next", <{root}/x?page=1,2>; rel="first"'}


def test_a_list_is_read_page_by_page_as_each_names_the_next(github: Loopback, client: GitHubClient) -> None:
    github.reply("GET /x?q=1&per_page=100", Reply(200, [1, 2], following(github, "q=1&per_page=100&page=2")))
    github.reply("GET /x?q=1&per_page=100&page=2", Reply(200, [], following(github, "q=1&cursor=b")))
    github.reply("GET /x?q=1&cursor=b", Reply(200, [3]))
    assert list(client.pages("/x", query={"q": 1}, limit=150)) == [1, 2, 3]


def test_a_list_may_stand_in_an_object(github: Loopback, client: GitHubClient) -> None:
    github.reply("GET /x?per_page=100", Reply(200, {"total_count": 2, "x": [1]}, following(github, "page=2")))
    github.reply("GET /x?page=2", Reply(200, {"total_count": 2, "x": [2]}))
    assert list(client.pages("/x", key="x", limit=100)) == [1, 2]


def test_no_more_of_a_list_is_read_than_was_asked_for(github: Loopback, client: GitHubClient) -> None:
    github.reply("GET /x?per_page=2", Reply(200, [1, 2], following(github, "page=2")))
    assert list(client.pages("/x", limit=2)) == [1, 2]
    assert len(github.asked) == 1


def test_of_a_link_to_another_host_only_the_question_counts(github: Loopback, client: GitHubClient) -> None:
    github.reply("GET /x?per_page=100", Reply(200, [1], following(github, "page=2", "http://evil.test")))
    github.reply("GET /x?page=2", Reply(200, [2]))
    assert list(client.pages("/x", limit=100)) == [1, 2]


def test_the_end_of_a_log_is_read_where_it_is_kept_without_the_token(github: Loopback, client: GitHubClient) -> None:
    with serving() as elsewhere:
        elsewhere.reply("GET /log", Reply(200, b"x" * 200_000 + b"the end"))
        github.reply("GET /logs", Reply(302, None, {"Location": f"{elsewhere.url}/log"}))
        assert client.tail("/logs", at_most=9) == b"xxthe end"
        assert "authorization" not in elsewhere.asked[0].headers


def test_a_log_that_is_gone_is_told_as_such(github: Loopback, client: GitHubClient) -> None:
    with serving() as elsewhere:
        github.reply("GET /logs", Reply(302, None, {"Location": f"{elsewhere.url}/log"}))
        with pytest.raises(GitHubError, match="answered 404"):
            client.tail("/logs", at_most=9)


def test_a_short_log_that_is_sent_at_once_is_taken(github: Loopback, client: GitHubClient) -> None:
    github.reply("GET /logs", Reply(200, b"all of it"))
    assert client.tail("/logs", at_most=5) == b"of it"


def test_graphql_lies_beside_the_rest_api_of_an_enterprise_and_its_errors_are_errors(github: Loopback) -> None:
    client = GitHubClient(f"{github.url}/api/v3", lambda: "tok")
    github.reply("POST /api/graphql", Reply(200, {"data": {"a": 1}}), Reply(200, {"errors": [{"message": "no"}]}))
    assert client.graphql("query", {"x": 1}) == {"a": 1}
    assert github.asked[0].body == {"query": "query", "variables": {"x": 1}}
    with pytest.raises(GitHubError, match="no") as raised:
        client.graphql("query", {})
    assert not raised.value.retryable


def test_what_is_asked_by_graphql_may_be_asked_again(github: Loopback, client: GitHubClient) -> None:
    limited = {"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]}
    github.reply("POST /graphql", BUSY, Reply(200, {"data": 1}), Reply(200, limited))
    assert client.graphql("query", {}) == 1
    with pytest.raises(GitHubError, match="rate limit") as raised:
        client.graphql("query", {})
    assert raised.value.retryable
