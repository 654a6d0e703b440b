"""Issues and what is said and stuck on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper_local.fake_github.calls import Answer, Call, Page, Route, created, no_content
from sandpiper_local.fake_github.errors import Refusal, invalid, not_found
from sandpiper_local.fake_github.pushes import close
from sandpiper_local.fake_github.state import Comment, Issue
from sandpiper_local.fake_github.views.common import user_view
from sandpiper_local.fake_github.views.issues import comment_view, issue_view, label_view

if TYPE_CHECKING:
    from sandpiper_local.fake_github.state import Repository

MAX_COMMENT_CHARS = 65_536


def list_issues(call: Call) -> Page:
    state, labels = call.query.get("state", "open"), set(filter(None, call.query.get("labels", "").split(",")))
    chosen = [
        issue for issue in reversed(call.repo.issues.values())
        if state in {issue.state, "all"} and labels <= {label.name for label in issue.labels}
    ]  # fmt: skip
    return Page([issue_view(call.hub, call.repo, issue) for issue in chosen])


def create_issue(call: Call) -> Answer:
    now, hub = call.hub.clock.now(), call.hub
    issue = Issue(
        id=hub.new_id(), number=hub.next_number(call.repo), title=call.text("title", resource="Issue"),
        body=call.body.get("body"), user=call.actor.person, created_at=now, updated_at=now, by_app=call.actor.is_app,
    )  # fmt: skip
    call.repo.issues[issue.number] = issue
    _tell(call, issue, "opened")
    _label(call, issue, call.body.get("labels") or [])
    _assign(call, issue, call.body.get("assignees") or [])
    return created(issue_view(hub, call.repo, issue))


def get_issue(call: Call) -> Any:
    return issue_view(call.hub, call.repo, call.issue)


def update_issue(call: Call) -> Any:
    issue, body = call.issue, call.body
    issue.title, issue.body = body.get("title", issue.title), body.get("body", issue.body)
    if "labels" in body:
        issue.labels = []
        _label(call, issue, body["labels"])
    if "assignees" in body:
        issue.assignees = []
        _assign(call, issue, body["assignees"])
    set_state(call, issue)
    issue.updated_at = call.hub.clock.now()
    return issue_view(call.hub, call.repo, issue)


def set_state(call: Call, issue: Issue) -> None:
    wanted = call.body.get("state", issue.state)
    if wanted == "closed" and issue.state == "open":
        close(call.hub, call.repo, issue, call.actor.person)
        if not issue.pull:
            issue.state_reason = call.body.get("state_reason", "completed")
            _tell(call, issue, "closed")
    elif wanted == "open" and issue.state == "closed":
        if issue.pull and issue.pull.merged_at:
            raise invalid("PullRequest", "state")
        issue.state, issue.state_reason, issue.closed_at, issue.closed_by = "open", None, None, None


def _tell(call: Call, issue: Issue, action: str, **more: Any) -> None:
    """Of a pull request GitHub tells under another name, which nobody here listens to."""
    if issue.pull is None:
        view = issue_view(call.hub, call.repo, issue)
        call.hub.webhooks.emit(call.hub, "issues", action, call.repo, call.actor.person, issue=view, **more)


# ---- comments


def list_comments(call: Call) -> Page:
    return Page([comment_view(call.hub, call.repo, call.issue, comment) for comment in call.issue.comments])


def create_comment(call: Call) -> Answer:
    body, now, issue = call.text("body", resource="IssueComment"), call.hub.clock.now(), call.issue
    if len(body) > MAX_COMMENT_CHARS:
        raise invalid("IssueComment", "body", message=f"is too long (maximum is {MAX_COMMENT_CHARS} characters)")
    comment = Comment(call.hub.new_id(), call.actor.person, body, now, now, by_app=call.actor.is_app)
    issue.comments.append(comment)
    issue.updated_at = now
    _tell_comment(call, issue, comment, "created")
    return created(comment_view(call.hub, call.repo, issue, comment))


def get_comment(call: Call) -> Any:
    issue, comment = find_comment(call.repo, call.number("comment_id"))
    return comment_view(call.hub, call.repo, issue, comment)


def update_comment(call: Call) -> Any:
    issue, comment = find_comment(call.repo, call.number("comment_id"))
    _check_author(call, comment)
    before, comment.body = comment.body, call.text("body", resource="IssueComment")
    comment.updated_at = call.hub.clock.now()
    _tell_comment(call, issue, comment, "edited", changes={"body": {"from": before}})
    return comment_view(call.hub, call.repo, issue, comment)


def delete_comment(call: Call) -> Answer:
    issue, comment = find_comment(call.repo, call.number("comment_id"))
    _check_author(call, comment)
    issue.comments.remove(comment)
    _tell_comment(call, issue, comment, "deleted")
    return no_content()


def _check_author(call: Call, comment: Comment) -> None:
    mine = comment.user is call.actor.user
    if not mine and call.repo.permission_of(call.actor.person.login) not in {"write", "maintain", "admin"}:
        raise Refusal(403, "Must have admin rights to Repository.")


def _tell_comment(call: Call, issue: Issue, comment: Comment, action: str, **more: Any) -> None:
    hub, repo = call.hub, call.repo
    views = {"issue": issue_view(hub, repo, issue), "comment": comment_view(hub, repo, issue, comment)}
    hub.webhooks.emit(hub, "issue_comment", action, repo, call.actor.person, **views, **more)


def find_comment(repository: Repository, wanted: int) -> tuple[Issue, Comment]:
    for issue in repository.issues.values():
        for comment in issue.comments:
            if comment.id == wanted:
                return issue, comment
    raise not_found()


# ---- labels and assignees


def list_labels(call: Call) -> Page:
    return Page([label_view(call.hub, call.repo, label) for label in call.issue.labels])


def add_labels(call: Call) -> Any:
    _label(call, call.issue, call.body["labels"] if isinstance(call.body, dict) else call.body)
    return [label_view(call.hub, call.repo, label) for label in call.issue.labels]


def remove_label(call: Call) -> Any:
    left = [label for label in call.issue.labels if label.name != call.params["name"]]
    if len(left) == len(call.issue.labels):
        raise Refusal(404, "Label does not exist")
    call.issue.labels = left
    return [label_view(call.hub, call.repo, label) for label in left]


def _label(call: Call, issue: Issue, names: list[str]) -> None:
    for name in names:
        label = call.hub.label(call.repo, name)
        if label not in issue.labels:
            issue.labels.append(label)
            _tell(call, issue, "labeled", label=label_view(call.hub, call.repo, label))


def add_assignees(call: Call) -> Answer:
    _assign(call, call.issue, call.body.get("assignees") or [])
    return created(issue_view(call.hub, call.repo, call.issue))


def remove_assignees(call: Call) -> Any:
    names = call.body.get("assignees") or []
    call.issue.assignees = [user for user in call.issue.assignees if user.login not in names]
    return issue_view(call.hub, call.repo, call.issue)


def _assign(call: Call, issue: Issue, names: list[str]) -> None:
    for name in names:
        user = call.hub.user(name)
        if user not in issue.assignees:
            issue.assignees.append(user)
            _tell(call, issue, "assigned", assignee=user_view(call.hub, user))


_ISSUES = "/repos/{owner}/{repo}/issues"
_ISSUE = f"{_ISSUES}/{{issue_number}}"
_COMMENT = f"{_ISSUES}/comments/{{comment_id}}"
ROUTES = [
    Route("GET", _ISSUES, list_issues, "issues:read"),
    Route("POST", _ISSUES, create_issue, "issues:write", by_anyone=True),
    Route("GET", _ISSUE, get_issue, "issues:read"),
    Route("PATCH", _ISSUE, update_issue, "issues:write"),
    Route("GET", f"{_ISSUE}/comments", list_comments, "issues:read"),
    Route("POST", f"{_ISSUE}/comments", create_comment, "issues:write", by_anyone=True),
    Route("GET", _COMMENT, get_comment, "issues:read"),
    Route("PATCH", _COMMENT, update_comment, "issues:write", by_anyone=True),
    Route("DELETE", _COMMENT, delete_comment, "issues:write", by_anyone=True),
    Route("GET", f"{_ISSUE}/labels", list_labels, "issues:read"),
    Route("POST", f"{_ISSUE}/labels", add_labels, "issues:write"),
    Route("DELETE", f"{_ISSUE}/labels/{{name}}", remove_label, "issues:write"),
    Route("POST", f"{_ISSUE}/assignees", add_assignees, "issues:write"),
    Route("DELETE", f"{_ISSUE}/assignees", remove_assignees, "issues:write"),
]
