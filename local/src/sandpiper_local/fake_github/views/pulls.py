"""Pull requests, reviews and their comments, as GitHub shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper_local.fake_github.views.common import (
    association,
    node_id,
    repository_view,
    time_of,
    time_or_none,
    user_view,
)
from sandpiper_local.fake_github.views.git import file_views
from sandpiper_local.fake_github.views.issues import label_view, page_of, reactions_view

if TYPE_CHECKING:
    from sandpiper_local.fake_github.hub import Hub
    from sandpiper_local.fake_github.state import Issue, Pull, Repository, Review, ReviewComment
    from sandpiper_local.fake_github.views.common import Json

_PARTS = {
    "review_comments_url": "/comments", "commits_url": "/commits",
}  # fmt: skip


def pull_of(issue: Issue) -> Pull:
    assert issue.pull is not None  # noqa: S101 - routes look before they call
    return issue.pull


def diff_base(repository: Repository, pull: Pull) -> str:
    """Where the head branched off: what GitHub compares with."""
    base = repository.git.resolve(f"refs/heads/{pull.base_ref}") if not pull.merged_at else None
    return repository.git.merge_base(base or pull.base_sha, pull.head_sha) or pull.base_sha


def simple_pull_view(hub: Hub, repository: Repository, issue: Issue) -> Json:
    """As in lists and events."""
    pull, base = pull_of(issue), f"{hub.api_url}/repos/{repository.full_name}"
    url, page, of_issue = (
        f"{base}/pulls/{issue.number}",
        page_of(hub, repository, issue),
        f"{base}/issues/{issue.number}",
    )
    links = {
        "url": url, "html_url": page, "diff_url": f"{page}.diff", "patch_url": f"{page}.patch", "issue_url": of_issue,
        "comments_url": f"{of_issue}/comments", "review_comment_url": f"{base}/pulls/comments{{/number}}",
        "statuses_url": f"{base}/statuses/{pull.head_sha}", **{name: url + path for name, path in _PARTS.items()},
    }  # fmt: skip
    return links | {
        "id": issue.id, "node_id": node_id("PR", issue.id), "number": issue.number, "state": issue.state,
        "locked": False,
        "title": issue.title, "user": user_view(hub, issue.user), "body": issue.body, "draft": pull.draft,
        "created_at": time_of(issue.created_at), "updated_at": time_of(issue.updated_at),
        "closed_at": time_or_none(issue.closed_at), "merged_at": time_or_none(pull.merged_at),
        "merge_commit_sha": pull.merge_commit_sha, "milestone": None, "auto_merge": None, "active_lock_reason": None,
        "labels": [label_view(hub, repository, label) for label in issue.labels],
        "assignee": user_view(hub, issue.assignees[0]) if issue.assignees else None,
        "assignees": [user_view(hub, user) for user in issue.assignees],
        "requested_reviewers": [user_view(hub, user) for user in pull.requested_reviewers], "requested_teams": [],
        "author_association": association(repository, issue.user),
        "head": _end(hub, pull.head_repo, pull.head_ref, pull.head_sha),
        "base": _end(hub, repository, pull.base_ref, pull.base_sha), "_links": _links(links, url),
    }  # fmt: skip


def _end(hub: Hub, repository: Repository | None, ref: str, sha: str) -> Json:
    owner = repository.owner if repository else None
    return {
        "label": f"{owner.login if owner else 'unknown'}:{ref}", "ref": ref, "sha": sha,
        "user": user_view(hub, owner) if owner else None,
        "repo": repository_view(hub, repository) if repository else None,
    }  # fmt: skip


def _links(links: dict[str, str], url: str) -> Json:
    names = {
        "self": url, "html": links["html_url"], "issue": links["issue_url"], "comments": links["comments_url"],
        "review_comments": links["review_comments_url"], "review_comment": links["review_comment_url"],
        "commits": links["commits_url"], "statuses": links["statuses_url"],
    }  # fmt: skip
    return {name: {"href": href} for name, href in names.items()}


def pull_view(hub: Hub, repository: Repository, issue: Issue) -> Json:
    pull = pull_of(issue)
    since = diff_base(repository, pull)
    files = file_views(hub, repository, since, pull.head_sha)
    mergeable = (
        issue.state == "open" and repository.git.merged_tree(f"refs/heads/{pull.base_ref}", pull.head_sha) is not None
    )
    return simple_pull_view(hub, repository, issue) | {
        "merged": pull.merged_at is not None, "mergeable": mergeable, "rebaseable": mergeable,
        "mergeable_state": "clean" if mergeable else "dirty",
        "merged_by": user_view(hub, pull.merged_by) if pull.merged_by else None, "comments": len(issue.comments),
        "review_comments": len(pull.comments), "maintainer_can_modify": False,
        "commits": len(repository.git.commits_between(since, pull.head_sha)),
        "additions": sum(file["additions"] for file in files), "deletions": sum(file["deletions"] for file in files),
        "changed_files": len(files),
    }  # fmt: skip


def review_view(hub: Hub, repository: Repository, issue: Issue, review: Review) -> Json:
    url, page = f"{hub.api_url}/repos/{repository.full_name}/pulls/{issue.number}", page_of(hub, repository, issue)
    html = f"{page}#pullrequestreview-{review.id}"
    view: Json = {
        "id": review.id, "node_id": node_id("PRR", review.id), "user": user_view(hub, review.user), "body": review.body,
        "state": review.state, "html_url": html, "pull_request_url": url, "commit_id": review.commit_id,
        "author_association": association(repository, review.user),
        "_links": {"html": {"href": html}, "pull_request": {"href": url}},
    }  # fmt: skip
    if review.submitted_at:
        view["submitted_at"] = time_of(review.submitted_at)
    return view


def review_comment_view(hub: Hub, repository: Repository, issue: Issue, comment: ReviewComment) -> Json:
    base, page = f"{hub.api_url}/repos/{repository.full_name}/pulls", page_of(hub, repository, issue)
    url, html, of_pull = f"{base}/comments/{comment.id}", f"{page}#discussion_r{comment.id}", f"{base}/{issue.number}"
    view: Json = {
        "url": url, "html_url": html, "pull_request_url": of_pull, "id": comment.id,
        "node_id": node_id("PRRC", comment.id), "pull_request_review_id": comment.review_id, "path": comment.path,
        "diff_hunk": comment.diff_hunk, "commit_id": comment.commit_id, "original_commit_id": comment.commit_id,
        "position": comment.position, "original_position": comment.position or 1, "line": comment.line,
        "original_line": comment.line or 1, "side": comment.side, "start_line": comment.start_line,
        "original_start_line": comment.start_line, "start_side": comment.start_side,
        "subject_type": comment.subject_type,
        "user": user_view(hub, comment.user), "body": comment.body, "created_at": time_of(comment.created_at),
        "updated_at": time_of(comment.updated_at), "author_association": association(repository, comment.user),
        "reactions": reactions_view(url, comment.reactions),
        "_links": {"self": {"href": url}, "html": {"href": html}, "pull_request": {"href": of_pull}},
    }  # fmt: skip
    if comment.in_reply_to:
        view["in_reply_to_id"] = comment.in_reply_to
    return view
