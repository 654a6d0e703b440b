"""A repository on GitHub, by the requests that are made of it."""

from __future__ import annotations

from typing import Any

import pytest

from sandpiper.adapters.github.client import GitHubClient
from sandpiper.adapters.github.hub import RestHub
from sandpiper.errors import GitHubError
from sandpiper.logic.github.conversation import Entry
from sandpiper.models.github import PullRequest, Topic
from tests.unit.adapters.github.loopback import Loopback, Reply
from tests.unit.logic.github.hub_world import ORIGIN, delivery

REPO = "/repos/acme/shop"


@pytest.fixture
def hub(github: Loopback) -> RestHub:
    return RestHub(GitHubClient(github.url, lambda: "tok", sleep=lambda _: None), "acme/shop", author=lambda: None)


def said(n: int, body: str | None, login: str = "bob", **more: Any) -> dict[str, Any]:
    user = {"login": login, "type": "Bot" if login.endswith("[bot]") else "User"}
    return {"id": n, "body": body, "user": user, "created_at": f"2026-01-01T00:00:{n:02}Z", **more}


@pytest.mark.parametrize(("permission", "may"), [("admin", True), ("write", True), ("read", False), ("none", False)])
def test_whoever_may_write_is_a_writer(github: Loopback, hub: RestHub, permission: str, *, may: bool) -> None:
    github.reply(f"GET {REPO}/collaborators/ann/permission", Reply(200, {"permission": permission}))
    assert hub.may_write("ann") is may


def test_somebody_who_is_gone_is_no_writer(hub: RestHub) -> None:
    assert hub.may_write("ghost") is False


def test_a_permission_that_could_not_be_asked_is_no_permission(github: Loopback, hub: RestHub) -> None:
    github.reply(f"GET {REPO}/collaborators/ann/permission", Reply(403, {"message": "Resource not accessible"}))
    with pytest.raises(GitHubError):
        hub.may_write("ann")


def test_an_issue_is_read(github: Loopback, hub: RestHub) -> None:
    issue = {"title": "T", "body": None, "user": {"login": "eve"}, "state": "open", "comments": 3}
    github.reply(f"GET {REPO}/issues/7", Reply(200, issue))
    assert hub.topic(7, is_pull=False) == Topic(number=7, title="T", author="eve", comments=3)


@pytest.mark.parametrize(
    ("repository", "from_fork"), [({"full_name": "acme/shop"}, False), ({"full_name": "eve/shop"}, True), (None, True)]
)
def test_a_pull_request_is_read_with_where_it_comes_from(
    github: Loopback, hub: RestHub, repository: dict[str, str] | None, *, from_fork: bool
) -> None:
    pull = {
        "title": "T", "body": "B", "user": None, "state": "closed", "comments": 0,
        "head": {"sha": "a" * 40, "ref": "topic", "repo": repository},
        "base": {"ref": "main", "repo": {"full_name": "acme/shop"}},
    }  # fmt: skip
    github.reply(f"GET {REPO}/pulls/8", Reply(200, pull))
    expected = PullRequest(head_sha="a" * 40, head_ref="topic", base_ref="main", from_fork=from_fork)
    assert hub.topic(8, is_pull=True) == Topic(
        number=8, title="T", body="B", author="ghost", is_open=False, pull=expected
    )


def test_the_conversation_is_in_order_and_without_ourselves(github: Loopback, hub: RestHub) -> None:
    ours = said(2, "<!-- sandpiper:run x -->", "sandpiper[bot]")
    github.reply(f"GET {REPO}/issues/8/comments", Reply(200, [said(1, "first"), ours, said(4, "/fix"), said(5, None)]))
    github.reply("POST /graphql", in_reviews())
    assert hub.said_on(PULL_TOPIC, delivery(comment_id=4)) == [
        Entry("bob", "first"), Entry("bob", ""),
    ]  # fmt: skip


PULL_TOPIC = Topic(
    number=8, title="T", author="x", comments=4, pull=PullRequest(head_sha="a", head_ref="b", base_ref="c")
)


def remark(second: int, body: str, login: str | None = "bob") -> dict[str, Any]:
    author = {"login": login} if login else None
    return {"author": author, "body": body, "createdAt": f"2026-01-01T00:00:{second:02}Z", "diffHunk": "@@"}


def thread(*comments: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {"isResolved": False, "path": "a.py", "line": 3, "originalLine": 3}
    return about | {"comments": {"nodes": list(comments)}} | more


def in_reviews(*threads: dict[str, Any], reviews: tuple[dict[str, Any], ...] = ()) -> Reply:
    pull = {"reviews": {"nodes": list(reviews)}, "reviewThreads": {"nodes": list(threads)}}
    return Reply(200, {"data": {"repository": {"pullRequest": pull}}})


def test_of_reviews_what_is_not_settled_is_part_of_the_conversation_and_so_are_our_own_remarks(
    github: Loopback, hub: RestHub
) -> None:
    ours = "🟠 **Major**: Must be 2.\n\n<!-- sandpiper:remark 0 -->"
    review = {"author": {"login": "ann"}, "body": "Rename it.", "submittedAt": "2026-01-01T00:00:02Z"}
    drafted, empty = {**review, "submittedAt": None}, {**review, "body": ""}
    github.reply(f"GET {REPO}/issues/8/comments", Reply(200, [said(1, "first")]))
    github.reply(
        "POST /graphql",
        in_reviews(
            thread(remark(3, ours, "sandpiper"), remark(5, "Sure", None), remark(6, "/fix", "ann")),
            thread(remark(4, "And here?"), line=None, originalLine=None),
            thread(remark(4, "Done with"), isResolved=True),
            reviews=(review, drafted, empty),
        ),
    )
    asked = delivery(origin="review_comment", comment_id=9, said_at="2026-01-01T00:00:06Z")
    assert hub.said_on(PULL_TOPIC, asked) == [
        Entry("bob", "first"), Entry("ann", "Rename it."), Entry("sandpiper", ours, "a.py:3", "@@"),
        Entry("bob", "And here?", "a.py", "@@"), Entry("ghost", "Sure", "a.py:3"),
    ]  # fmt: skip


def test_an_issue_without_comments_costs_no_request(github: Loopback, hub: RestHub) -> None:
    assert hub.said_on(Topic(number=7, title="T", author="x"), delivery()) == []
    assert not github.asked


def test_of_many_comments_the_last_are_read(github: Loopback, hub: RestHub) -> None:
    for page, count in ((2, 100), (3, 50)):
        found = [said(n % 60, f"{page}-{n}") for n in range(count)]
        github.reply(f"GET {REPO}/issues/7/comments?per_page=100&page={page}", Reply(200, found))
    entries = hub.said_on(Topic(number=7, title="T", author="x", comments=250), delivery())
    assert len(entries) == 100
    assert {entry.text[:2] for entry in entries} == {"2-", "3-"}


@pytest.mark.parametrize(
    ("origin", "comment_id", "path"),
    [
        ("issue_comment", 70, "issues/comments/70"),
        ("review_comment", 70, "pulls/comments/70"),
        ("review", 70, "issues/7"),
        ("issue", None, "issues/7"),
    ],
)
def test_a_reaction_goes_where_github_takes_one(
    github: Loopback, hub: RestHub, origin: Any, comment_id: int | None, path: str
) -> None:
    github.reply(f"POST {REPO}/{path}/reactions", Reply(201, {"id": 1}))
    hub.react(ORIGIN.model_copy(update={"origin": origin, "comment_id": comment_id}), "eyes")
    assert (github.paths, github.asked[0].body) == ([f"POST {REPO}/{path}/reactions"], {"content": "eyes"})


def test_comments_are_written_edited_and_found_again(github: Loopback, hub: RestHub) -> None:
    marker = "<!-- sandpiper:run r -->"
    forged, ours = said(1, f"{marker} me too", "eve"), said(2, f"{marker}\nhello", "sandpiper[bot]")
    github.reply(f"POST {REPO}/issues/7/comments", Reply(201, {"id": 2}))
    github.reply(f"PATCH {REPO}/issues/comments/2", Reply(200, {"id": 2}))
    github.reply(f"GET {REPO}/issues/7", Reply(200, {"comments": 2}))
    github.reply(f"GET {REPO}/issues/7/comments", Reply(200, [forged, ours]))
    assert hub.comment(7, "x") == 2
    hub.edit_comment(2, "y")
    github.reply(f"GET {REPO}/issues/comments/2", Reply(200, {"id": 2, "body": "y"}))
    assert hub.comment_text(2) == "y"
    assert hub.find_comment(7, marker) == 2
    assert hub.find_comment(7, "<!-- sandpiper:run other -->") is None


@pytest.mark.parametrize(
    ("suites", "complete"),
    [
        ([("completed", 1), ("completed", 2)], True),
        ([("completed", 1), ("in_progress", 1)], False),
        ([("completed", 1), ("queued", 0)], True),
    ],
)
def test_checks_are_complete_when_all_that_have_begun_are(
    github: Loopback, hub: RestHub, suites: list[tuple[str, int]], *, complete: bool
) -> None:
    found = [{"status": status, "latest_check_runs_count": count} for status, count in suites]
    github.reply(f"GET {REPO}/commits/abc/check-suites", Reply(200, {"check_suites": found}))
    assert hub.checks_are_complete("abc") is complete
