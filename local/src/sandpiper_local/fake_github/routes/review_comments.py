"""Remarks on lines of a pull request, and the threads that they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper_local.fake_github.calls import Answer, Call, Page, Route, created, no_content
from sandpiper_local.fake_github.diff_lines import DiffLine, find_line
from sandpiper_local.fake_github.errors import Refusal, not_found
from sandpiper_local.fake_github.state import Review, ReviewComment, Thread
from sandpiper_local.fake_github.views.common import node_id
from sandpiper_local.fake_github.views.pulls import diff_base, pull_of, review_comment_view, simple_pull_view

if TYPE_CHECKING:
    from sandpiper_local.fake_github.state import Issue, Repository


def list_comments(call: Call) -> Page:
    return Page([review_comment_view(call.hub, call.repo, call.pull, one) for one in pull_of(call.pull).comments])


def create_comment(call: Call) -> Answer:
    if call.body.get("in_reply_to"):
        return _reply(call, int(call.body["in_reply_to"]))
    now, issue = call.hub.clock.now(), call.pull
    sha = call.text("commit_id", resource="PullRequestReviewComment")
    review = Review(call.hub.new_id(), call.actor.person, "", "COMMENTED", sha, now)
    comment = new_comment(call, issue, call.body, review)
    pull_of(issue).reviews.append(review)
    add_comment(call, issue, comment)
    return created(review_comment_view(call.hub, call.repo, issue, comment))


def reply(call: Call) -> Answer:
    return _reply(call, call.number("comment_id"))


def _reply(call: Call, first: int) -> Answer:
    issue, parent = find_review_comment(call.repo, first)
    if parent.in_reply_to:
        raise Refusal(422, "Validation Failed", errors=["in_reply_to is a reply itself"])
    now = call.hub.clock.now()
    comment = ReviewComment(
        call.hub.new_id(), call.actor.person, call.text("body", resource="PullRequestReviewComment"), now, now,
        by_app=call.actor.is_app, review_id=parent.review_id, path=parent.path, commit_id=parent.commit_id,
        line=parent.line, side=parent.side, position=parent.position, diff_hunk=parent.diff_hunk, in_reply_to=parent.id,
    )  # fmt: skip
    add_comment(call, issue, comment)
    return created(review_comment_view(call.hub, call.repo, issue, comment))


def new_comment(call: Call, issue: Issue, body: dict[str, Any], review: Review) -> ReviewComment:
    """Raises Refusal for a line that the diff does not show."""
    if not body.get("path") or not body.get("body"):
        raise Refusal(422, "Validation Failed", errors=["path and body are required"])
    side, now = body.get("side", "RIGHT"), call.hub.clock.now()
    place = None if body.get("subject_type") == "file" else _place(call, issue, body, side)
    return ReviewComment(
        call.hub.new_id(), call.actor.person, body["body"], now, now, by_app=call.actor.is_app, review_id=review.id,
        path=body["path"], commit_id=review.commit_id, line=body.get("line"), side=side,
        start_line=body.get("start_line"), start_side=body.get("start_side"),
        position=place.position if place else None, diff_hunk=place.hunk if place else "",
        subject_type=body.get("subject_type", "line"),
    )  # fmt: skip


def _place(call: Call, issue: Issue, body: dict[str, Any], side: str) -> DiffLine:
    pull, path = pull_of(issue), body["path"]
    base = diff_base(call.repo, pull)
    if path not in {changed for _, changed, _ in call.repo.git.changes(base, pull.head_sha)}:
        raise Refusal(422, "Unprocessable Entity", errors=["Path could not be resolved"])
    patch = call.repo.git.patch_of(base, pull.head_sha, [path])
    start, line = body.get("start_line"), body.get("line")
    if start is not None and (
        line is None or start >= line or not find_line(patch, start, body.get("start_side", side))
    ):
        raise Refusal(
            422, "Unprocessable Entity", errors=["Start line must precede the end line and be part of the same hunk"]
        )
    place = find_line(patch, line, side) if isinstance(line, int) else None
    if place is None:
        raise Refusal(422, "Unprocessable Entity", errors=["Line could not be resolved"])
    return place


def add_comment(call: Call, issue: Issue, comment: ReviewComment) -> None:
    pull = pull_of(issue)
    pull.comments.append(comment)
    if comment.in_reply_to is None:
        pull.threads.append(Thread(node_id("PRRT", comment.id), comment.id))
    issue.updated_at = call.hub.clock.now()
    call.hub.webhooks.emit(
        call.hub, "pull_request_review_comment", "created", call.repo, call.actor.person,
        comment=review_comment_view(call.hub, call.repo, issue, comment),
        pull_request=simple_pull_view(call.hub, call.repo, issue),
    )  # fmt: skip


def get_comment(call: Call) -> Any:
    issue, comment = find_review_comment(call.repo, call.number("comment_id"))
    return review_comment_view(call.hub, call.repo, issue, comment)


def update_comment(call: Call) -> Any:
    issue, comment = find_review_comment(call.repo, call.number("comment_id"))
    comment.body, comment.updated_at = call.text("body", resource="PullRequestReviewComment"), call.hub.clock.now()
    return review_comment_view(call.hub, call.repo, issue, comment)


def delete_comment(call: Call) -> Answer:
    issue, comment = find_review_comment(call.repo, call.number("comment_id"))
    pull_of(issue).comments.remove(comment)
    return no_content()


def find_review_comment(repository: Repository, wanted: int) -> tuple[Issue, ReviewComment]:
    for issue in repository.pulls:
        for comment in pull_of(issue).comments:
            if comment.id == wanted:
                return issue, comment
    raise not_found()


_PULLS = "/repos/{owner}/{repo}/pulls"
_COMMENT = f"{_PULLS}/comments/{{comment_id}}"
ROUTES = [
    Route("GET", f"{_PULLS}/{{pull_number}}/comments", list_comments, "pull_requests:read"),
    Route("POST", f"{_PULLS}/{{pull_number}}/comments", create_comment, "pull_requests:write", by_anyone=True),
    Route(
        "POST",
        f"{_PULLS}/{{pull_number}}/comments/{{comment_id}}/replies",
        reply,
        "pull_requests:write",
        by_anyone=True,
    ),
    Route("GET", _COMMENT, get_comment, "pull_requests:read"),
    Route("PATCH", _COMMENT, update_comment, "pull_requests:write", by_anyone=True),
    Route("DELETE", _COMMENT, delete_comment, "pull_requests:write", by_anyone=True),
]
