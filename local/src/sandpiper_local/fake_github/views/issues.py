"""Issues, comments, labels and reactions, as GitHub shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper_local.fake_github.views.common import app_view, association, node_id, time_of, time_or_none, user_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandpiper_local.fake_github.hub import Hub
    from sandpiper_local.fake_github.state import Comment, Issue, Label, Reaction, Repository
    from sandpiper_local.fake_github.views.common import Json

REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")


def page_of(hub: Hub, repository: Repository, issue: Issue) -> str:
    kind = "pull" if issue.pull else "issues"
    return f"{hub.url}/{repository.full_name}/{kind}/{issue.number}"


def label_view(hub: Hub, repository: Repository, label: Label) -> Json:
    return {
        "id": label.id, "node_id": node_id("LA", label.id), "name": label.name, "color": label.color, "default": False,
        "description": label.description, "url": f"{hub.api_url}/repos/{repository.full_name}/labels/{label.name}",
    }  # fmt: skip


def reaction_view(hub: Hub, reaction: Reaction) -> Json:
    return {
        "id": reaction.id, "node_id": node_id("REA", reaction.id), "user": user_view(hub, reaction.user),
        "content": reaction.content, "created_at": time_of(reaction.created_at),
    }  # fmt: skip


def reactions_view(url: str, reactions: Sequence[Reaction]) -> Json:
    counts = {name: sum(one.content == name for one in reactions) for name in REACTIONS}
    return {"url": f"{url}/reactions", "total_count": len(reactions), **counts}


def issue_view(hub: Hub, repository: Repository, issue: Issue) -> Json:
    base = f"{hub.api_url}/repos/{repository.full_name}"
    url = f"{base}/issues/{issue.number}"
    view: Json = {
        "url": url, "repository_url": base, "labels_url": f"{url}/labels{{/name}}", "comments_url": f"{url}/comments",
        "events_url": f"{url}/events", "timeline_url": f"{url}/timeline", "html_url": page_of(hub, repository, issue),
        "id": issue.id, "node_id": node_id("I", issue.id), "number": issue.number, "title": issue.title,
        "user": user_view(hub, issue.user), "labels": [label_view(hub, repository, label) for label in issue.labels],
        "state": issue.state, "state_reason": issue.state_reason, "locked": False, "active_lock_reason": None,
        "assignee": user_view(hub, issue.assignees[0]) if issue.assignees else None,
        "assignees": [user_view(hub, user) for user in issue.assignees], "milestone": None,
        "comments": len(issue.comments), "created_at": time_of(issue.created_at),
        "updated_at": time_of(issue.updated_at), "closed_at": time_or_none(issue.closed_at), "body": issue.body,
        "author_association": association(repository, issue.user), "reactions": reactions_view(url, issue.reactions),
        "closed_by": user_view(hub, issue.closed_by) if issue.closed_by else None,
        "performed_via_github_app": app_view(hub, hub.app) if issue.by_app and hub.app else None,
    }  # fmt: skip
    if issue.pull:
        page = page_of(hub, repository, issue)
        view["draft"] = issue.pull.draft
        view["pull_request"] = {
            "url": f"{base}/pulls/{issue.number}", "html_url": page, "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch", "merged_at": time_or_none(issue.pull.merged_at),
        }  # fmt: skip
    return view


def comment_view(hub: Hub, repository: Repository, issue: Issue, comment: Comment) -> Json:
    base = f"{hub.api_url}/repos/{repository.full_name}/issues"
    url = f"{base}/comments/{comment.id}"
    return {
        "url": url, "html_url": f"{page_of(hub, repository, issue)}#issuecomment-{comment.id}",
        "issue_url": f"{base}/{issue.number}", "id": comment.id, "node_id": node_id("IC", comment.id),
        "user": user_view(hub, comment.user), "created_at": time_of(comment.created_at),
        "updated_at": time_of(comment.updated_at), "author_association": association(repository, comment.user),
        "body": comment.body, "reactions": reactions_view(url, comment.reactions),
        "performed_via_github_app": app_view(hub, hub.app) if comment.by_app and hub.app else None,
    }  # fmt: skip
