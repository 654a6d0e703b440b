"""The Git data API: blobs, trees, commits and refs, as real objects of the repository."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from sandpiper_local.fake_github.calls import Answer, Call, Page, Route, created, no_content
from sandpiper_local.fake_github.errors import Refusal, not_found
from sandpiper_local.fake_github.git_store import ZERO, GitFailed, Person
from sandpiper_local.fake_github.pushes import after_push
from sandpiper_local.fake_github.views.common import time_of
from sandpiper_local.fake_github.views.git import blob_view, git_commit_view, ref_view, tree_view

_MODES = frozenset({"100644", "100755", "040000", "160000", "120000"})


def create_blob(call: Call) -> Answer:
    content = call.body.get("content")
    if not isinstance(content, str):
        raise Refusal(422, "Invalid request.\n\nFor 'properties/content', nil is not a string.")
    sha = call.repo.git.write_blob(_decoded(content, call.body.get("encoding", "utf-8")))
    return created({"sha": sha, "url": f"{call.hub.api_url}/repos/{call.repo.full_name}/git/blobs/{sha}"})


def _decoded(content: str, encoding: str) -> bytes:
    if encoding == "utf-8":
        return content.encode()
    try:
        return base64.b64decode(content)
    except binascii.Error:
        raise Refusal(422, "content is not valid Base64") from None


def get_blob(call: Call) -> Any:
    sha = call.params["file_sha"]
    if call.repo.git.kind_of(sha) != "blob":
        raise not_found()
    return blob_view(call.hub, call.repo, sha, call.repo.git.read_blob(sha))


def create_tree(call: Call) -> Answer:
    git, base = call.repo.git, call.body.get("base_tree")
    tree = git.resolve(base, "tree") if base else None
    if base and tree is None:
        raise Refusal(404, "base_tree is not a valid tree oid")
    known = {entry.path for entry in git.read_tree(tree, recursive=True)} if tree else set()
    try:
        sha = git.write_tree([_entry(call, entry, known) for entry in call.body.get("tree", [])], tree)
    except GitFailed as error:
        raise Refusal(422, f"GitRPC::BadObjectState: {error}") from error
    return created(tree_view(call.hub, call.repo, sha, git.read_tree(sha)))


def _entry(call: Call, entry: dict[str, Any], known: set[str]) -> tuple[str, str, str]:
    mode, path = entry.get("mode", "100644"), entry["path"]
    if mode not in _MODES:
        raise Refusal(422, f"tree.mode must be one of {sorted(_MODES)}")
    if "content" in entry:
        return mode, call.repo.git.write_blob(entry["content"].encode()), path
    sha = entry.get("sha")
    if sha is None:
        if path not in known:
            raise Refusal(422, "GitRPC::BadObjectState")
        return mode, ZERO, path
    if call.repo.git.kind_of(sha) is None:
        raise Refusal(422, f"tree.sha {sha} is not a valid blob")
    return mode, sha, path


def get_tree(call: Call) -> Any:
    tree = call.repo.git.resolve(call.params["tree_sha"], "tree")
    if tree is None:
        raise not_found()
    entries = call.repo.git.read_tree(tree, recursive="recursive" in call.query)
    return tree_view(call.hub, call.repo, tree, entries)


def create_commit(call: Call) -> Answer:
    git, tree, parents = call.repo.git, call.body.get("tree"), call.body.get("parents", [])
    if git.resolve(tree or "", "tree") is None:
        raise Refusal(422, "Tree SHA does not exist")
    if any(git.resolve(parent) is None for parent in parents):
        raise Refusal(422, "Parent SHA does not exist or is not a commit object")
    author = _person(call, "author")
    sha = git.write_commit(
        tree, parents, call.text("message", resource="Commit"), author, _person(call, "committer") or author
    )
    return created(git_commit_view(call.hub, call.repo, git.read_commit(sha)))


def _person(call: Call, role: str) -> Person:
    given, user, now = call.body.get(role) or {}, call.actor.person, time_of(call.hub.clock.now())
    return Person(
        given.get("name", user.login), given.get("email", call.hub.email_of(user)), given.get("date", now)
    )  # fmt: skip


def get_commit(call: Call) -> Any:
    sha = call.repo.git.resolve(call.params["commit_sha"])
    if sha is None:
        raise not_found()
    return git_commit_view(call.hub, call.repo, call.repo.git.read_commit(sha))


def get_ref(call: Call) -> Any:
    ref = f"refs/{call.params['ref']}"
    sha = call.repo.git.refs(ref).get(ref)
    if sha is None:
        raise not_found()
    return ref_view(call.hub, call.repo, ref, sha)


def matching_refs(call: Call) -> Page:
    prefix = f"refs/{call.params['ref']}"
    found = {ref: sha for ref, sha in call.repo.git.refs("refs/").items() if ref.startswith(prefix)}
    return Page([ref_view(call.hub, call.repo, ref, sha) for ref, sha in found.items()])


def create_ref(call: Call) -> Answer:
    ref, sha, git = call.text("ref", resource="Reference"), call.body.get("sha", ""), call.repo.git
    if not ref.startswith("refs/") or ref.count("/") < 2:
        raise Refusal(422, "Reference name must start with 'refs/' and have at least two slashes.")
    if ref in git.refs(ref):
        raise Refusal(422, "Reference already exists")
    if git.resolve(sha) is None:
        raise Refusal(422, "Object does not exist")
    _move(call, ref, sha, ZERO)
    return created(ref_view(call.hub, call.repo, ref, sha))


def update_ref(call: Call) -> Any:
    ref, sha, git = f"refs/{call.params['ref']}", call.body.get("sha", ""), call.repo.git
    old = git.refs(ref).get(ref)
    if old is None:
        raise Refusal(422, "Reference does not exist")
    if git.resolve(sha) is None:
        raise Refusal(422, "Object does not exist")
    if not call.body.get("force") and not git.is_ancestor(old, sha):
        raise Refusal(422, "Update is not a fast forward")
    _check_protected(call, ref)
    _move(call, ref, sha, old)
    return ref_view(call.hub, call.repo, ref, sha)


def delete_ref(call: Call) -> Answer:
    ref = f"refs/{call.params['ref']}"
    before = call.repo.git.refs()
    if ref not in call.repo.git.refs(ref):
        raise Refusal(422, "Reference does not exist")
    _check_protected(call, ref)
    call.repo.git.delete_ref(ref)
    after_push(call.hub, call.repo, before, call.actor.person)
    return no_content()


def _check_protected(call: Call, ref: str) -> None:
    if ref.removeprefix("refs/heads/") in call.repo.protected:
        raise Refusal(422, "Changes must be made through a pull request.")


def _move(call: Call, ref: str, sha: str, old: str) -> None:
    before = call.repo.git.refs()
    try:
        call.repo.git.update_ref(ref, sha, old)
    except GitFailed as error:
        raise Refusal(422, f"Reference cannot be updated: {error}") from error
    after_push(call.hub, call.repo, before, call.actor.person)


_GIT = "/repos/{owner}/{repo}/git"
ROUTES = [
    Route("POST", f"{_GIT}/blobs", create_blob, "contents:write"),
    Route("GET", f"{_GIT}/blobs/{{file_sha}}", get_blob, "contents:read"),
    Route("POST", f"{_GIT}/trees", create_tree, "contents:write"),
    Route("GET", f"{_GIT}/trees/{{tree_sha}}", get_tree, "contents:read"),
    Route("POST", f"{_GIT}/commits", create_commit, "contents:write"),
    Route("GET", f"{_GIT}/commits/{{commit_sha}}", get_commit, "contents:read"),
    Route("GET", f"{_GIT}/ref/{{ref}}", get_ref, "contents:read"),
    Route("GET", f"{_GIT}/matching-refs/{{ref}}", matching_refs, "contents:read"),
    Route("POST", f"{_GIT}/refs", create_ref, "contents:write"),
    Route("PATCH", f"{_GIT}/refs/{{ref}}", update_ref, "contents:write"),
    Route("DELETE", f"{_GIT}/refs/{{ref}}", delete_ref, "contents:write"),
]
