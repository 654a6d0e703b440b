"""What GitHub's own example payloads ask of us."""

from __future__ import annotations

from typing import Any

import pytest

from sandpiper.errors import BadRequest
from sandpiper.logic.github.deliveries import Delivery, Ignored, Triggers, read_delivery, run_id_of
from tests.unit.logic.github.payloads import comment, payload

TRIGGERS = Triggers(label="sandpiper", assignee="")


def read(name: str, body: Any, triggers: Triggers = TRIGGERS) -> Delivery | Ignored:
    return read_delivery(name, "d-1", body, triggers)


def test_a_comment_on_an_issue_is_a_delivery_with_all_that_is_needed_later() -> None:
    body = comment("/implement a logout button")
    assert read("issue_comment", body) == Delivery(
        id="d-1",
        verb="implement",
        text="a logout button",
        installation_id=42,
        repository=body["repository"]["full_name"],
        repository_id=body["repository"]["id"],
        default_branch=body["repository"]["default_branch"],
        sender="ann",
        number=body["issue"]["number"],
        comment_id=body["comment"]["id"],
        said_at=body["comment"]["created_at"],
    )


def test_a_comment_on_a_pull_request_says_so() -> None:
    body = comment("/review")
    body["issue"]["pull_request"] = {"url": "https://api.github.com/…"}
    found = read("issue_comment", body)
    assert isinstance(found, Delivery)
    assert found.is_pull


@pytest.mark.parametrize(
    ("body", "quoted", "text"),
    [("> Which one?\n\nThe first", "Which one?", "The first"), ("> Which one?", "Which one?", "")],
)
def test_a_reply_brings_what_it_quotes(body: str, quoted: str, text: str) -> None:
    found = read("issue_comment", comment(body))
    assert isinstance(found, Delivery)
    assert (found.verb, found.is_reply, found.quoted, found.text) == ("say", True, quoted, text)


def test_a_command_that_is_shown_as_part_of_a_quote_is_none() -> None:
    assert read("issue_comment", comment("> Which one?\n/cancel")) == Ignored("no command")


def test_a_review_comment_brings_its_part_of_the_diff() -> None:
    body = payload("pull_request_review_comment.created")
    body["comment"] |= {"body": "/fix this"}
    found = read("pull_request_review_comment", body)
    assert isinstance(found, Delivery)
    assert (found.verb, found.origin, found.is_pull) == ("fix", "review_comment", True)
    assert (found.path, found.hunk) == (body["comment"]["path"], body["comment"]["diff_hunk"])


def test_a_review_may_hold_a_command() -> None:
    body = payload("pull_request_review.submitted")
    body["review"] |= {"body": "Not yet.\n\n/fix the remarks"}
    found = read("pull_request_review", body)
    assert isinstance(found, Delivery)
    assert (found.verb, found.origin, found.text) == ("fix", "review", "Not yet.\n\nthe remarks")
    assert found.said_at == body["review"]["submitted_at"]


def test_a_review_without_words_asks_for_nothing() -> None:
    body = payload("pull_request_review.submitted")
    body["review"]["body"] = None
    assert read("pull_request_review", body) == Ignored("no command")


@pytest.mark.parametrize(
    ("name", "triggers", "verb"),
    [
        ("issues.labeled", Triggers(label="BUG", assignee=""), "implement"),
        ("issues.labeled", Triggers(label="", assignee=""), None),
        ("issues.labeled", Triggers(label="sandpiper", assignee=""), None),
        ("issues.assigned", Triggers(label="", assignee="Codertocat"), "implement"),
        ("issues.assigned", Triggers(label="", assignee=""), None),
    ],
)
def test_the_configured_label_or_assignee_has_an_issue_implemented(
    name: str, triggers: Triggers, verb: str | None
) -> None:
    body = payload(name)
    if name == "issues.assigned":
        body["assignee"]["login"] = "codertocat"
    found = read("issues", body, triggers)
    assert (found.verb if isinstance(found, Delivery) else None) == verb


def test_a_label_that_a_bot_sets_is_no_wish() -> None:
    body = payload("issues.labeled")
    body["sender"]["type"] = "Bot"
    assert read("issues", body, Triggers(label="bug", assignee="")) == Ignored("done by a bot")


def test_completed_checks_are_told_even_by_a_bot() -> None:
    body = payload("check_suite.completed")
    body["sender"] |= {"type": "Bot", "login": "github-actions[bot]"}
    found = read("check_suite", body)
    assert isinstance(found, Delivery)
    assert (found.verb, found.head_sha) == ("checks", body["check_suite"]["head_sha"])


def test_our_own_checks_wake_nobody() -> None:
    body = payload("check_suite.completed")
    ours = Triggers(label="", assignee="", app_id=str(body["check_suite"]["app"]["id"]))
    assert read("check_suite", body, ours) == Ignored("a check of our own")


def test_an_edit_asks_for_nothing() -> None:
    body = payload("issue_comment.edited")
    body["comment"]["body"] = "/implement"
    assert read("issue_comment", body) == Ignored("only new comments count")


@pytest.mark.parametrize("bot", [{"type": "Bot"}, {"login": "renovate[bot]"}])
def test_a_bot_asks_for_nothing(bot: dict[str, str]) -> None:
    body = comment("/implement")
    body["comment"]["user"] |= bot
    assert isinstance(read("issue_comment", body), Ignored)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("issue_comment.created", "comment"),
        ("pull_request_review_comment.created", "comment"),
        ("pull_request_review.submitted", "review"),
    ],
)
def test_somebody_whose_account_is_gone_asks_for_nothing(name: str, part: str) -> None:
    body = payload(name)
    body[part] |= {"body": "/fix", "user": None}
    assert read(name.partition(".")[0], body) == Ignored("written by nobody")


@pytest.mark.parametrize(("name", "part"), [("issues.labeled", "label"), ("issues.assigned", "assignee")])
def test_a_label_or_an_assignee_that_github_leaves_out_triggers_nothing(name: str, part: str) -> None:
    triggers = Triggers(label="bug", assignee="Codertocat")
    assert read("issues", payload(name) | {part: None}, triggers) == Ignored("no trigger")
    body = payload(name)
    del body[part]
    assert read("issues", body, triggers) == Ignored("no trigger")


def test_a_comment_that_an_app_wrote_for_a_person_asks_for_nothing() -> None:
    body = comment("/implement")
    body["comment"]["performed_via_github_app"] = {"id": 1}
    assert isinstance(read("issue_comment", body), Ignored)


@pytest.mark.parametrize("name", ["installation.created", "installation_repositories.added"])
def test_installations_are_only_noted(name: str) -> None:
    assert isinstance(read(name.partition(".")[0], payload(name)), Ignored)


def test_an_event_that_nobody_knows_is_ignored() -> None:
    assert read("star", {}) == Ignored("unknown event")


@pytest.mark.parametrize("body", [None, [], 1, "x", {}, {"action": "created"}, {"action": "created", "comment": 3}])
def test_what_is_no_such_event_is_refused(body: Any) -> None:
    with pytest.raises(BadRequest):
        read("issue_comment", body)


def test_a_hook_that_is_not_the_apps_starts_nothing() -> None:
    body = comment("/implement")
    del body["installation"]
    assert read("issue_comment", body) == Ignored("not sent by the App")


def test_every_redelivery_is_about_the_same_run() -> None:
    first, again = read("issue_comment", comment("/fix")), read("issue_comment", comment("/fix"))
    assert isinstance(first, Delivery)
    assert isinstance(again, Delivery)
    assert run_id_of(first) == run_id_of(again)
