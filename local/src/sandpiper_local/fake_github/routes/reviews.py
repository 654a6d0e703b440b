"""Reviews of a pull request: one verdict with its remarks, taken as a whole or not at all."""

from __future__ import annotations

from typing import Any

from sandpiper_local.fake_github.calls import Answer, Call, Page, Route
from sandpiper_local.fake_github.errors import Refusal, not_found
from sandpiper_local.fake_github.routes.review_comments import add_comment, new_comment
from sandpiper_local.fake_github.state import Review
from sandpiper_local.fake_github.views.pulls import pull_of, review_comment_view, review_view, simple_pull_view

_STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}


def list_reviews(call: Call) -> Page:
    return Page([review_view(call.hub, call.repo, call.pull, one) for one in pull_of(call.pull).reviews])


def get_review(call: Call) -> Any:
    return review_view(call.hub, call.repo, call.pull, _review(call))


def list_comments(call: Call) -> Page:
    wanted = _review(call).id
    chosen = [one for one in pull_of(call.pull).comments if one.review_id == wanted]
    return Page([review_comment_view(call.hub, call.repo, call.pull, one) for one in chosen])


def create_review(call: Call) -> Answer:
    issue, pull, now = call.pull, pull_of(call.pull), call.hub.clock.now()
    event = call.body.get("event")
    _check(call, event)
    review = Review(
        call.hub.new_id(), call.actor.person, call.body.get("body") or "", _STATES.get(event, "PENDING"),
        call.body.get("commit_id") or pull.head_sha, now if event else None,
    )  # fmt: skip
    comments = [new_comment(call, issue, body, review) for body in call.body.get("comments") or []]
    pull.reviews.append(review)
    for comment in comments:
        add_comment(call, issue, comment)
    if event:
        _tell(call, review)
    return Answer(review_view(call.hub, call.repo, issue, review))


def _check(call: Call, event: str | None) -> None:
    if event not in {None, *_STATES}:
        raise Refusal(422, "Unprocessable Entity", errors=[f"Variable $event has an invalid value: {event}"])
    if event in {"COMMENT", "REQUEST_CHANGES"} and not call.body.get("body") and not call.body.get("comments"):
        raise Refusal(422, "Unprocessable Entity", errors=["Body is required"])
    if event in {"APPROVE", "REQUEST_CHANGES"} and call.pull.user is call.actor.user:
        verb = "approve" if event == "APPROVE" else "request changes on"
        raise Refusal(422, "Unprocessable Entity", errors=[f"Can not {verb} your own pull request"])
    sha = call.body.get("commit_id")
    if sha and call.repo.git.resolve(sha) is None:
        raise Refusal(422, "Unprocessable Entity", errors=["commit_id is not part of the pull request"])


def _tell(call: Call, review: Review) -> None:
    view = review_view(call.hub, call.repo, call.pull, review)
    view["state"] = review.state.lower()  # small in events, capital in answers
    call.hub.webhooks.emit(
        call.hub, "pull_request_review", "submitted", call.repo, call.actor.person, review=view,
        pull_request=simple_pull_view(call.hub, call.repo, call.pull),
    )  # fmt: skip


def dismiss_review(call: Call) -> Any:
    review = _review(call)
    review.state = "DISMISSED"
    return review_view(call.hub, call.repo, call.pull, review)


def _review(call: Call) -> Review:
    wanted = call.number("review_id")
    if found := next((one for one in pull_of(call.pull).reviews if one.id == wanted), None):
        return found
    raise not_found()


_REVIEWS = "/repos/{owner}/{repo}/pulls/{pull_number}/reviews"
_REVIEW = f"{_REVIEWS}/{{review_id}}"
ROUTES = [
    Route("GET", _REVIEWS, list_reviews, "pull_requests:read"),
    Route("POST", _REVIEWS, create_review, "pull_requests:write", by_anyone=True),
    Route("GET", _REVIEW, get_review, "pull_requests:read"),
    Route("GET", f"{_REVIEW}/comments", list_comments, "pull_requests:read"),
    Route("PUT", f"{_REVIEW}/dismissals", dismiss_review, "pull_requests:write"),
]
