"""Commits, trees, refs and files, as GitHub shows them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING
from urllib.parse import quote

from sandpiper_local.fake_github.diff_lines import patch_body
from sandpiper_local.fake_github.views.common import user_view

if TYPE_CHECKING:
    from sandpiper_local.fake_github.git_store import CommitData, Person, TreeEntry
    from sandpiper_local.fake_github.hub import Hub
    from sandpiper_local.fake_github.state import Repository
    from sandpiper_local.fake_github.views.common import Json

_STATUS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}
_UNVERIFIED = {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def _base(hub: Hub, repository: Repository) -> str:
    return f"{hub.api_url}/repos/{repository.full_name}"


def person_view(person: Person) -> Json:
    return {"name": person.name, "email": person.email, "date": person.date}


def git_commit_view(hub: Hub, repository: Repository, commit: CommitData) -> Json:
    url, page = f"{_base(hub, repository)}/git", f"{hub.url}/{repository.full_name}/commit"
    return {
        "sha": commit.sha, "node_id": f"C_{commit.sha}", "url": f"{url}/commits/{commit.sha}",
        "html_url": f"{page}/{commit.sha}", "author": person_view(commit.author),
        "committer": person_view(commit.committer), "tree": {"url": f"{url}/trees/{commit.tree}", "sha": commit.tree},
        "message": commit.message, "verification": _UNVERIFIED,
        "parents": [{"url": f"{url}/commits/{sha}", "sha": sha, "html_url": f"{page}/{sha}"} for sha in commit.parents],
    }  # fmt: skip


def commit_view(hub: Hub, repository: Repository, sha: str) -> Json:
    data = repository.git.read_commit(sha)
    url, page = f"{_base(hub, repository)}/commits", f"{hub.url}/{repository.full_name}/commit"
    return {
        "sha": sha, "node_id": f"C_{sha}", "url": f"{url}/{sha}", "html_url": f"{page}/{sha}",
        "comments_url": f"{url}/{sha}/comments", "author": _author(hub, data.author),
        "committer": _author(hub, data.committer),
        "commit": {
            "url": f"{_base(hub, repository)}/git/commits/{sha}", "author": person_view(data.author),
            "committer": person_view(data.committer), "message": data.message, "comment_count": 0,
            "tree": {"url": f"{_base(hub, repository)}/git/trees/{data.tree}", "sha": data.tree},
            "verification": _UNVERIFIED,
        },
        "parents": [{"url": f"{url}/{parent}", "sha": parent,
        "html_url": f"{page}/{parent}"} for parent in data.parents],
    }  # fmt: skip


def _author(hub: Hub, person: Person) -> Json | None:
    user = hub.user_by_email(person.email)
    return user_view(hub, user) if user else None


def simple_commit_view(repository: Repository, sha: str) -> Json:
    data = repository.git.read_commit(sha)
    people = {role: {"name": one.name, "email": one.email} for role, one in _roles(data)}
    return {"id": sha, "tree_id": data.tree, "message": data.message, "timestamp": data.committer.date, **people}


def _roles(data: CommitData) -> list[tuple[str, Person]]:
    return [("author", data.author), ("committer", data.committer)]


def pushed_commit_view(hub: Hub, repository: Repository, sha: str) -> Json:
    parents = repository.git.read_commit(sha).parents
    changes = repository.git.changes(parents[0] if parents else EMPTY_TREE, sha)
    paths = {name: [path for letter, path, _ in changes if letter in letters]
             for name, letters in (("added", "AC"), ("removed", "D"), ("modified", "MRT"))}  # fmt: skip
    page = f"{hub.url}/{repository.full_name}/commit/{sha}"
    return simple_commit_view(repository, sha) | {"url": page, "distinct": True, **paths}


def ref_view(hub: Hub, repository: Repository, ref: str, sha: str) -> Json:
    base = _base(hub, repository)
    return {
        "ref": ref, "node_id": f"REF_{ref}", "url": f"{base}/git/{quote(ref)}",
        "object": {"type": "commit", "sha": sha, "url": f"{base}/git/commits/{sha}"},
    }  # fmt: skip


def branch_view(hub: Hub, repository: Repository, name: str, sha: str) -> Json:
    url = f"{_base(hub, repository)}/branches/{quote(name)}"
    protected = name in repository.protected
    return {
        "name": name, "protected": protected, "protection": {"enabled": protected},
        "protection_url": f"{url}/protection",
        "commit": commit_view(hub, repository, sha),
        "_links": {"self": url, "html": f"{hub.url}/{repository.full_name}/tree/{quote(name)}"},
    }  # fmt: skip


def tree_view(hub: Hub, repository: Repository, sha: str, entries: list[TreeEntry]) -> Json:
    base = f"{_base(hub, repository)}/git"
    tree = [
        {"path": entry.path, "mode": entry.mode, "type": entry.type, "sha": entry.sha,
         "url": f"{base}/{entry.type}s/{entry.sha}", **({} if entry.size is None else {"size": entry.size})}
        for entry in entries
    ]  # fmt: skip
    return {"sha": sha, "url": f"{base}/trees/{sha}", "tree": tree, "truncated": False}


def blob_view(hub: Hub, repository: Repository, sha: str, content: bytes) -> Json:
    return {
        "sha": sha, "node_id": f"B_{sha}", "size": len(content), "encoding": "base64",
        "url": f"{_base(hub, repository)}/git/blobs/{sha}", "content": base64.encodebytes(content).decode(),
    }  # fmt: skip


def content_view(hub: Hub, repository: Repository, entry: TreeEntry, ref: str, *, whole: bool = False) -> Json:
    url = f"{_base(hub, repository)}/contents/{quote(entry.path)}?ref={quote(ref, safe='')}"
    git_url = f"{_base(hub, repository)}/git/{entry.type}s/{entry.sha}"
    page = f"{hub.url}/{repository.full_name}/blob/{quote(ref)}/{quote(entry.path)}"
    view: Json = {
        "type": "dir" if entry.type == "tree" else "file", "size": entry.size or 0,
        "name": entry.path.rsplit("/", 1)[-1],
        "path": entry.path, "sha": entry.sha, "url": url, "git_url": git_url, "html_url": page, "download_url": None,
        "_links": {"self": url, "git": git_url, "html": page},
    }  # fmt: skip
    if whole:
        view |= {"encoding": "base64", "content": base64.encodebytes(repository.git.read_blob(entry.sha)).decode()}
    return view


def file_views(hub: Hub, repository: Repository, base: str, head: str) -> list[Json]:
    """The files of a diff, each with its patch."""
    return [_file_view(hub, repository, base, head, change) for change in repository.git.changes(base, head)]


def _file_view(hub: Hub, repository: Repository, base: str, head: str, change: tuple[str, str, str | None]) -> Json:
    letter, path, before = change
    patch = patch_body(repository.git.patch_of(base, head, [path, *([before] if before else [])]))
    marks = [line[:1] for line in (patch or "").split("\n")]
    added, removed = marks.count("+"), marks.count("-")
    side = base if letter == "D" else head
    page = f"{hub.url}/{repository.full_name}"
    view: Json = {
        "sha": repository.git.blob_at(side, path), "filename": path, "status": _STATUS[letter],
        "additions": added, "deletions": removed, "changes": added + removed,
        "blob_url": f"{page}/blob/{side}/{quote(path)}", "raw_url": f"{page}/raw/{side}/{quote(path)}",
        "contents_url": f"{_base(hub, repository)}/contents/{quote(path)}?ref={side}",
    }  # fmt: skip
    if patch is not None:
        view["patch"] = patch
    if before:
        view["previous_filename"] = before
    return view
