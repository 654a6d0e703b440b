"""A repository, who may what in it, its branches, commits and files."""

from __future__ import annotations

from typing import Any

from sandpiper_local.fake_github.calls import Answer, Call, Page, Route
from sandpiper_local.fake_github.errors import not_found
from sandpiper_local.fake_github.state import LEVELS
from sandpiper_local.fake_github.views.common import repository_view, user_view
from sandpiper_local.fake_github.views.git import EMPTY_TREE, branch_view, commit_view, content_view, file_views
from sandpiper_local.fake_github.views.pulls import pull_of, simple_pull_view

# What the older field says of the newer roles
_COARSE = {"triage": "read", "maintain": "write"}


def get_repository(call: Call) -> Any:
    view = repository_view(call.hub, call.repo)
    if call.actor.token and call.actor.kind == "user":
        view["permissions"] = _rights(call.repo.permission_of(call.actor.person.login))
    return view


def _rights(level: str) -> dict[str, bool]:
    names = {"pull": "read", "triage": "triage", "push": "write", "maintain": "maintain", "admin": "admin"}
    return {name: LEVELS[level] >= LEVELS[least] for name, least in names.items()}


def get_permission(call: Call) -> Any:
    user = call.hub.users.get(call.params["username"])
    if user is None:
        raise not_found()
    level = call.repo.permission_of(user.login)
    view = user_view(call.hub, user) | {"role_name": level, "permissions": _rights(level)}
    return {"permission": _COARSE.get(level, level), "role_name": level, "user": view}


def list_branches(call: Call) -> Page:
    views = []
    for ref, sha in call.repo.git.refs().items():
        name = ref.removeprefix("refs/heads/")
        commit = {"sha": sha, "url": f"{call.hub.api_url}/repos/{call.repo.full_name}/commits/{sha}"}
        views.append({"name": name, "commit": commit, "protected": name in call.repo.protected})
    return Page(views)


def get_branch(call: Call) -> Any:
    sha = call.repo.git.resolve(f"refs/heads/{call.params['branch']}")
    if sha is None:
        raise not_found()
    return branch_view(call.hub, call.repo, call.params["branch"], sha)


def list_commits(call: Call) -> Page:
    sha = call.repo.git.resolve(call.query.get("sha", call.repo.default_branch))
    if sha is None:
        raise not_found()
    return Page([commit_view(call.hub, call.repo, one) for one in call.repo.git.log(sha, 250)])


def get_commit(call: Call) -> Any:
    sha = _commit(call)
    parents = call.repo.git.read_commit(sha).parents
    files = file_views(call.hub, call.repo, parents[0] if parents else EMPTY_TREE, sha)
    added, removed = (sum(file[kind] for file in files) for kind in ("additions", "deletions"))
    stats = {"additions": added, "deletions": removed, "total": added + removed}
    return commit_view(call.hub, call.repo, sha) | {"files": files, "stats": stats}


def _commit(call: Call) -> str:
    sha = call.repo.git.resolve(call.params.get("ref") or call.params["commit_sha"])
    if sha is None:
        raise not_found()
    return sha


def pulls_of_commit(call: Call) -> Page:
    sha = _commit(call)
    having = [one for one in call.repo.pulls if call.repo.git.is_ancestor(sha, pull_of(one).head_sha)]
    return Page([simple_pull_view(call.hub, call.repo, one) for one in having])


def compare(call: Call) -> Any:
    base_name, _, head_name = call.params["basehead"].partition("...")
    git, hub, repo = call.repo.git, call.hub, call.repo
    base, head = git.resolve(base_name), git.resolve(head_name)
    common = git.merge_base(base, head) if base and head else None
    if base is None or head is None or common is None:
        raise not_found()
    ahead, behind = git.commits_between(base, head), git.commits_between(head, base)
    status = {(True, True): "diverged", (True, False): "ahead", (False, True): "behind"}.get(
        (bool(ahead), bool(behind))
    )
    page = f"{hub.url}/{repo.full_name}/compare/{call.params['basehead']}"
    return {
        "url": f"{hub.api_url}/repos/{repo.full_name}/compare/{call.params['basehead']}", "html_url": page,
        "permalink_url": page, "diff_url": f"{page}.diff", "patch_url": f"{page}.patch",
        "status": status or "identical",
        "base_commit": commit_view(hub, repo, base), "merge_base_commit": commit_view(hub, repo, common),
        "ahead_by": len(ahead), "behind_by": len(behind), "total_commits": len(ahead),
        "commits": [commit_view(hub, repo, sha) for sha in ahead], "files": file_views(hub, repo, common, head),
    }  # fmt: skip


def get_content(call: Call) -> Any:
    ref, path = call.query.get("ref", call.repo.default_branch), call.params["path"].strip("/")
    tree = call.repo.git.resolve(ref, "tree")
    if tree is None:
        raise not_found()
    found = call.repo.git.read_tree(tree, path=path) if path else []
    if found and found[0].type == "blob":
        if "raw" in call.accept:
            return Answer(call.repo.git.read_blob(found[0].sha).decode(errors="replace"))
        return content_view(call.hub, call.repo, found[0], ref, whole=True)
    if path and not found:
        raise not_found()
    below = call.repo.git.read_tree(tree, path=f"{path}/" if path else "")
    return [content_view(call.hub, call.repo, entry, ref) for entry in below]


_REPO = "/repos/{owner}/{repo}"
ROUTES = [
    Route("GET", _REPO, get_repository, "metadata:read"),
    Route("GET", f"{_REPO}/collaborators/{{username}}/permission", get_permission, "metadata:read"),
    Route("GET", f"{_REPO}/branches", list_branches, "contents:read"),
    Route("GET", f"{_REPO}/branches/{{branch}}", get_branch, "contents:read"),
    Route("GET", f"{_REPO}/commits", list_commits, "contents:read"),
    Route("GET", f"{_REPO}/commits/{{ref}}", get_commit, "contents:read"),
    Route("GET", f"{_REPO}/commits/{{commit_sha}}/pulls", pulls_of_commit, "pull_requests:read"),
    Route("GET", f"{_REPO}/compare/{{basehead}}", compare, "contents:read"),
    Route("GET", f"{_REPO}/contents/{{path}}", get_content, "contents:read"),
]
