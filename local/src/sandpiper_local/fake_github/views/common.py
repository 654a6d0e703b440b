"""Users, repositories, the App and its installations, as GitHub shows them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from sandpiper_local.fake_github.hub import Hub
    from sandpiper_local.fake_github.state import App, Delivery, Installation, Repository, Token, User

type Json = dict[str, Any]

_USER_LINKS = {
    "followers_url": "/followers", "following_url": "/following{/other_user}", "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}", "subscriptions_url": "/subscriptions", "organizations_url": "/orgs",
    "repos_url": "/repos", "events_url": "/events{/privacy}", "received_events_url": "/received_events",
}  # fmt: skip
_REPOSITORY_LINKS = {
    "archive_url": "/{archive_format}{/ref}", "assignees_url": "/assignees{/user}", "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}", "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}", "commits_url": "/commits{/sha}", "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}", "contributors_url": "/contributors", "deployments_url": "/deployments",
    "downloads_url": "/downloads", "events_url": "/events", "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}", "git_refs_url": "/git/refs{/sha}", "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks", "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}", "keys_url": "/keys{/key_id}", "labels_url": "/labels{/name}",
    "languages_url": "/languages", "merges_url": "/merges", "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}", "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}", "stargazers_url": "/stargazers", "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers", "subscription_url": "/subscription", "tags_url": "/tags", "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}  # fmt: skip
_NOTHING_TO_COUNT = (
    "forks", "forks_count", "network_count", "size", "stargazers_count", "subscribers_count", "watchers",
    "watchers_count",
)  # fmt: skip


def time_of(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def time_or_none(moment: datetime | None) -> str | None:
    return time_of(moment) if moment else None


def node_id(kind: str, number: int) -> str:
    return f"{kind}_" + base64.urlsafe_b64encode(str(number).encode()).decode().rstrip("=")


def user_view(hub: Hub, user: User) -> Json:
    url = f"{hub.api_url}/users/{user.login}"
    return {
        "login": user.login, "id": user.id, "node_id": node_id("U", user.id), "type": user.type, "site_admin": False,
        "avatar_url": f"{hub.url}/avatars/{user.id}", "gravatar_id": "", "url": url,
        "html_url": f"{hub.url}/{user.login}", **{name: url + path for name, path in _USER_LINKS.items()},
    }  # fmt: skip


def whole_user_view(hub: Hub, user: User) -> Json:
    unknown = ("bio", "blog", "company", "email", "hireable", "location", "name")
    none = ("followers", "following", "public_gists", "public_repos", "private_gists", "total_private_repos",
            "owned_private_repos", "disk_usage", "collaborators")  # fmt: skip
    long_ago = "2020-01-01T00:00:00Z"
    return user_view(hub, user) | dict.fromkeys(unknown) | dict.fromkeys(none, 0) | {
        "created_at": long_ago, "updated_at": long_ago, "two_factor_authentication": True, "blog": "",
    }  # fmt: skip


def association(repository: Repository, user: User) -> str:
    if user is repository.owner:
        return "OWNER"
    level = repository.permissions.get(user.login, "none")
    return "COLLABORATOR" if level in {"triage", "write", "maintain", "admin"} else "NONE"


def repository_view(hub: Hub, repository: Repository) -> Json:
    url, page = f"{hub.api_url}/repos/{repository.full_name}", f"{hub.url}/{repository.full_name}"
    open_issues = sum(issue.state == "open" for issue in repository.issues.values())
    pushed = time_of(repository.created_at)
    return {
        "id": repository.id, "node_id": node_id("R", repository.id), "name": repository.name,
        "full_name": repository.full_name, "owner": user_view(hub, repository.owner), "private": repository.private,
        "html_url": page, "description": None, "fork": repository.fork_of is not None, "url": url,
        **{name: url + path for name, path in _REPOSITORY_LINKS.items()}, **dict.fromkeys(_NOTHING_TO_COUNT, 0),
        "clone_url": f"{page}.git", "git_url": f"git:{page}.git", "ssh_url": f"git@{page}.git", "svn_url": page,
        "mirror_url": None, "homepage": None, "language": None, "license": None, "created_at": pushed,
        "pushed_at": pushed, "updated_at": pushed, "default_branch": repository.default_branch,
        "archived": repository.archived, "disabled": False, "has_issues": True, "has_projects": False,
        "has_downloads": False, "has_wiki": False, "has_pages": False, "has_discussions": False,
        "open_issues": open_issues, "open_issues_count": open_issues, "topics": [], "allow_forking": True,
        "is_template": False, "web_commit_signoff_required": False, "custom_properties": {},
        "visibility": "private" if repository.private else "public",
    }  # fmt: skip


def short_repository_view(repository: Repository) -> Json:
    """As in the events of an installation."""
    return {
        "id": repository.id, "node_id": node_id("R", repository.id), "name": repository.name,
        "full_name": repository.full_name, "private": repository.private,
    }  # fmt: skip


def app_view(hub: Hub, app: App) -> Json:
    since = time_of(app.created_at)
    return {
        "id": app.id, "slug": app.slug, "node_id": node_id("A", app.id), "name": app.name,
        "owner": user_view(hub, app.owner), "description": None, "external_url": hub.url,
        "html_url": f"{hub.url}/apps/{app.slug}", "created_at": since, "updated_at": since,
        "permissions": app.permissions, "events": [],
    }  # fmt: skip


def installation_view(hub: Hub, installation: Installation) -> Json:
    since, app = time_of(installation.created_at), hub.app
    url = f"{hub.api_url}/app/installations/{installation.id}"
    return {
        "id": installation.id, "account": user_view(hub, installation.account),
        "access_tokens_url": f"{url}/access_tokens",
        "repositories_url": f"{hub.api_url}/installation/repositories",
        "html_url": f"{hub.url}/installations/{installation.id}",
        "app_id": app.id if app else 0, "app_slug": app.slug if app else "", "target_id": installation.account.id,
        "target_type": installation.account.type, "permissions": installation.permissions, "events": [],
        "repository_selection": "all" if installation.all_repositories else "selected", "single_file_name": None,
        "has_multiple_single_files": False, "single_file_paths": [], "created_at": since, "updated_at": since,
        "suspended_at": time_or_none(installation.suspended_at),
        "suspended_by": user_view(hub, installation.account) if installation.suspended_at else None,
    }  # fmt: skip


def token_view(hub: Hub, token: Token) -> Json:
    view: Json = {
        "token": token.value, "expires_at": time_or_none(token.expires_at), "permissions": token.permissions,
        "repository_selection": "all" if token.repositories is None else "selected",
    }  # fmt: skip
    if token.repositories is not None:
        view["repositories"] = [repository_view(hub, repository) for repository in token.repositories]
    return view


def delivery_view(delivery: Delivery) -> Json:
    return {
        "id": delivery.id, "guid": delivery.guid, "delivered_at": time_of(delivery.delivered_at),
        "redelivery": delivery.redelivery, "duration": delivery.duration, "status": delivery.status,
        "status_code": delivery.status_code, "event": delivery.event, "action": delivery.action,
        "installation_id": delivery.installation_id, "repository_id": delivery.repository_id, "throttled_at": None,
    }  # fmt: skip
