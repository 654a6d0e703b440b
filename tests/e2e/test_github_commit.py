"""POST /github/commit through the public door, onto the stack's own GitHub."""

from __future__ import annotations

import base64
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.support import Person, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from sandpiper_local.fake_github.client import GitHubAdmin
    from tests.e2e.conftest import Stack


@pytest.fixture
def github(stack: Stack) -> GitHubAdmin:
    assert stack.github is not None
    return stack.github


@pytest.fixture
def repo(github: GitHubAdmin) -> str:
    name = f"acme/{uuid.uuid4().hex[:12]}"
    github.add_repository(
        name, {"README.md": "# Till\n", "src/old.ts": "old"}, permissions={"ann": "write", "rob": "read"}
    )
    return name


@pytest.fixture
def person(stack: Stack) -> Iterator[Person]:
    with Person(stack) as someone:
        yield someone


def commit(person: Person, body: Any, token: str | None, **headers: str) -> httpx.Response:
    named = ({"X-GitHub-Token": token} if token else {}) | headers
    return person.http.post("/github/commit", json=body, headers=named)


def feature(repo: str, **changes: Any) -> dict[str, Any]:
    files = [
        {"path": "src/index.ts", "content": "// New file content"},
        {"path": "src/old.ts", "content": None},
        {"path": "logo.bin", "content": base64.b64encode(bytes(range(256))).decode(), "encoding": "base64"},
    ]
    whole = {
        "repo": repo, "branch": "feature-branch", "files": files, "message": "Add new feature", "create_branch": True,
        "base_branch": "main", "create_pr": True, "pr_title": "New Feature", "pr_body": "This PR adds a new feature.",
    }  # fmt: skip
    return whole | changes


def test_files_become_a_commit_on_a_branch_and_a_pull_request_once(
    github: GitHubAdmin, repo: str, person: Person
) -> None:
    token = github.token("ann", repositories=[repo], permissions={"contents": "write", "pull_requests": "write"})
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: commit(person, feature(repo), token, **{"Idempotency-Key": "one"}), range(3)))
    done = [answer.json() for answer in answers if answer.status_code == 200]
    assert {answer.status_code for answer in answers} <= {200, 409}  # 409: the first is still at it
    again = commit(person, feature(repo), token, **{"Idempotency-Key": "one"}).json()
    sha = again["commit"]["sha"]
    assert {answer["commit"]["sha"] for answer in done} <= {sha}
    assert again["commit"] == {
        "success": True, "sha": sha, "url": f"{github.url}/{repo}/commit/{sha}", "branch": "feature-branch",
        "pr_url": f"{github.url}/{repo}/pull/1",
    }  # fmt: skip
    files = github.call("GET", f"/repos/{repo}/pulls/1/files", by="ann")
    assert {file["filename"]: file["status"] for file in files} == {
        "logo.bin": "added", "src/index.ts": "added", "src/old.ts": "removed",
    }  # fmt: skip
    assert len(github.call("GET", f"/repos/{repo}/pulls/1/commits", by="ann")) == 1


def test_what_github_refuses_is_told_and_changes_nothing(github: GitHubAdmin, repo: str, person: Person) -> None:
    before = github.call("GET", f"/repos/{repo}/git/ref/heads/main", by="ann")["object"]["sha"]
    on_main = {"repo": repo, "branch": "main", "message": "Change", "files": [{"path": "README.md", "content": "x"}]}
    assert "X-GitHub-Token" in refusal(commit(person, on_main, None), 401, "authentication_error")["message"]
    refusal(commit(person, on_main, github.token("rob")), 403, "permission_error")
    refusal(commit(person, on_main, "ghp_nobody"), 403, "permission_error")
    refusal(commit(person, on_main | {"expected_sha": "0" * 40}, github.token("ann")), 409, "conflict")
    error = refusal(
        commit(person, on_main | {"files": [{"path": "../x", "content": ""}]}, "t"), 422, "validation_error"
    )
    assert error["details"][0]["field"] == "files.0.path"
    assert github.call("GET", f"/repos/{repo}/git/ref/heads/main", by="ann")["object"]["sha"] == before


def test_a_renamed_repository_is_found_under_its_old_name(github: GitHubAdmin, repo: str, person: Person) -> None:
    token, renamed = github.token("ann"), f"{repo}-2"
    github.fake("PATCH", f"/repos/{repo}", {"name": renamed.partition("/")[2]})
    answer = commit(person, feature(repo), token)
    assert (answer.status_code, answer.json()["commit"]["pr_url"]) == (200, f"{github.url}/{renamed}/pull/1")
    assert [file["filename"] for file in github.call("GET", f"/repos/{renamed}/pulls/1/files", by="ann")]


def test_the_token_of_github_is_in_no_log(stack: Stack, github: GitHubAdmin, repo: str, person: Person) -> None:
    token = github.token("ann")
    assert commit(person, feature(repo), token).status_code == 200
    logs = [file.read_text(errors="replace") for file in (stack.state_dir / "logs").iterdir()]
    assert logs
    assert not [log for log in logs if token in log]
