"""POST /github/commit, on a fake GitHub."""

from __future__ import annotations

import base64
import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper_local.fake_github.runner import FakeGitHub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.functions.support import Answer, Api

REPO = "acme/till"
SEED = {
    "repo": REPO,
    "branch": "feature-branch",
    "files": [
        {"path": "src/index.ts", "content": "// New file content"},
        {"path": "src/old.ts", "content": None},
    ],
    "message": "Add new feature",
    "create_branch": True,
    "base_branch": "main",
    "create_pr": True,
    "pr_title": "New Feature",
    "pr_body": "This PR adds a new feature.",
}
ON_MAIN = {"repo": REPO, "branch": "main", "message": "Change it", "files": [{"path": "README.md", "content": "new\n"}]}


@pytest.fixture
def github(tmp_path: Path, api: Api) -> Iterator[FakeGitHub]:
    with FakeGitHub(tmp_path) as fake:
        files = {"README.md": "# Till\n", "src/old.ts": "old", "src/lib/deep.ts": "deep"}
        fake.add_repository(REPO, files, permissions={"ann": "write", "rob": "read"})
        api.world = dataclasses.replace(api.world, github_api_url=fake.api_url)
        yield fake


def send(api: Api, github: FakeGitHub, body: Any, *, by: str = "ann", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return api.call("POST", "/github/commit", body, {"x-github-token": github.token(by), **named})


def read(github: FakeGitHub, path: str, ref: str = "main") -> bytes | None:
    listed = github.call("GET", f"/repos/{REPO}/git/trees/{ref}?recursive=1", by="ann")["tree"]
    sha = next((entry["sha"] for entry in listed if entry["path"] == path), None)
    if sha is None:
        return None
    return base64.b64decode(github.call("GET", f"/repos/{REPO}/git/blobs/{sha}", by="ann")["content"])


def commits(github: FakeGitHub, branch: str) -> list[str]:
    listed = github.call("GET", f"/repos/{REPO}/commits?sha={branch}", by="ann")
    return [commit["commit"]["message"] for commit in listed]


def test_the_body_of_the_seed_makes_a_branch_a_commit_and_a_pull_request(api: Api, github: FakeGitHub) -> None:
    answer = send(api, github, SEED)
    commit = answer.body["commit"]
    assert answer.status == 200
    assert answer.body == {
        "success": True,
        "commit": {
            "success": True,
            "sha": commit["sha"],
            "url": f"{github.url}/{REPO}/commit/{commit['sha']}",
            "branch": "feature-branch",
            "pr_url": f"{github.url}/{REPO}/pull/1",
        },
        "request_id": "req-1",
    }
    assert read(github, "src/index.ts", "feature-branch") == b"// New file content"
    assert read(github, "src/old.ts", "feature-branch") is None
    assert read(github, "src/lib/deep.ts", "feature-branch") == b"deep"
    assert commits(github, "feature-branch") == ["Add new feature", "The beginning"]
    pull = github.call("GET", f"/repos/{REPO}/pulls/1", by="ann")
    assert (pull["title"], pull["body"], pull["base"]["ref"]) == ("New Feature", "This PR adds a new feature.", "main")


def test_bytes_that_are_no_text_go_as_base64(api: Api, github: FakeGitHub) -> None:
    content = bytes(range(256))
    file = {"path": "logo.png", "content": base64.b64encode(content).decode(), "encoding": "base64"}
    assert send(api, github, ON_MAIN | {"files": [file]}).status == 200
    assert read(github, "logo.png") == content


def test_base64_may_be_broken_into_lines_as_the_tool_of_that_name_does(api: Api, github: FakeGitHub) -> None:
    content = bytes(range(256))
    file = {"path": "logo.png", "content": base64.encodebytes(content).decode(), "encoding": "base64"}
    assert send(api, github, ON_MAIN | {"files": [file]}).status == 200
    assert read(github, "logo.png") == content


def test_without_a_pull_request_the_title_of_none_is_told(api: Api, github: FakeGitHub) -> None:
    assert send(api, github, ON_MAIN).body["commit"]["pr_url"] is None


def test_a_script_stays_executable(api: Api, github: FakeGitHub) -> None:
    blob = github.call("POST", f"/repos/{REPO}/git/blobs", {"content": "#!/bin/sh\n"}, by="ann")["sha"]
    entry = {"path": "bin/run", "mode": "100755", "type": "blob", "sha": blob}
    base = f"/repos/{REPO}/git"
    head = github.call("GET", f"{base}/ref/heads/main", by="ann")["object"]["sha"]
    tree = github.call("POST", f"{base}/trees", {"base_tree": head, "tree": [entry]}, by="ann")["sha"]
    made = github.call("POST", f"{base}/commits", {"message": "x", "tree": tree, "parents": [head]}, by="ann")["sha"]
    github.call("PATCH", f"{base}/refs/heads/main", {"sha": made}, by="ann")
    assert send(api, github, ON_MAIN | {"files": [{"path": "bin/run", "content": "#!/bin/sh\nls\n"}]}).status == 200
    listed = github.call("GET", f"{base}/trees/main?recursive=1", by="ann")["tree"]
    assert {one["path"]: one["mode"] for one in listed}["bin/run"] == "100755"


def test_a_repeat_commits_nothing_and_opens_nothing_again(api: Api, github: FakeGitHub) -> None:
    first, second = send(api, github, SEED), send(api, github, SEED)
    assert second.body["commit"] == first.body["commit"]
    assert len(commits(github, "feature-branch")) == 2
    assert len(github.call("GET", f"/repos/{REPO}/pulls", by="ann")) == 1


def test_a_repeat_after_a_failure_in_the_middle_does_what_was_left(api: Api, github: FakeGitHub) -> None:
    github.fail_next("/pulls$", method="POST", status=500)
    failed = send(api, github, SEED)
    assert (failed.status, failed.error["type"], failed.error["retryable"]) == (502, "repository_error", True)
    assert send(api, github, SEED).body["commit"]["pr_url"] == f"{github.url}/{REPO}/pull/1"
    assert len(commits(github, "feature-branch")) == 2


def test_a_key_answers_the_same_even_if_the_branch_has_moved_on(api: Api, github: FakeGitHub) -> None:
    first = send(api, github, ON_MAIN, idempotency_key="k-1")
    github.commit(REPO, "main", {"README.md": "later\n"})
    assert send(api, github, ON_MAIN, idempotency_key="k-1").body["commit"] == first.body["commit"]
    assert read(github, "README.md") == b"later\n"
    other = send(api, github, ON_MAIN | {"message": "Another"}, idempotency_key="k-1")
    assert (other.status, other.error["type"]) == (409, "conflict")


def test_a_key_of_a_commit_is_not_one_of_a_run(api: Api, github: FakeGitHub) -> None:
    send(api, github, ON_MAIN, idempotency_key="k-1")
    assert api.call("POST", "/execute", {"task": "x"}, {"idempotency-key": "k-1"}).status == 202


def test_a_branch_that_moved_is_a_conflict_and_stays_as_it_is(api: Api, github: FakeGitHub) -> None:
    seen = github.call("GET", f"/repos/{REPO}/git/ref/heads/main", by="ann")["object"]["sha"]
    github.commit(REPO, "main", {"README.md": "somebody else\n"})
    answer = send(api, github, ON_MAIN | {"expected_sha": seen})
    assert (answer.status, answer.error["type"]) == (409, "conflict")
    assert seen in answer.error["message"]
    assert read(github, "README.md") == b"somebody else\n"


def test_a_repeat_with_the_expected_commit_is_no_conflict(api: Api, github: FakeGitHub) -> None:
    seen = github.call("GET", f"/repos/{REPO}/git/ref/heads/main", by="ann")["object"]["sha"]
    body = ON_MAIN | {"expected_sha": seen}
    assert send(api, github, body).body["commit"] == send(api, github, body).body["commit"]


def test_a_branch_that_moves_while_we_commit_is_a_conflict(api: Api, github: FakeGitHub) -> None:
    order = {"status": 422, "message": "Update is not a fast forward"}
    github.fail_next("/git/refs/heads/main", method="PATCH", **order)
    answer = send(api, github, ON_MAIN)
    assert (answer.status, answer.error["type"]) == (409, "conflict")
    assert "not a fast forward" in answer.error["message"]


def test_a_protected_branch_is_told_in_words_and_nothing_is_committed(api: Api, github: FakeGitHub) -> None:
    github.fake("PATCH", f"/repos/{REPO}", {"protected": ["main"]})
    answer = send(api, github, ON_MAIN)
    assert answer.status == 409
    assert "pull request" in answer.error["message"]
    assert commits(github, "main") == ["The beginning"]


def test_nothing_to_change_is_told(api: Api, github: FakeGitHub) -> None:
    same = ON_MAIN | {"files": [{"path": "README.md", "content": "# Till\n"}, {"path": "away", "content": None}]}
    answer = send(api, github, same)
    assert (answer.status, "nothing to commit" in answer.error["message"]) == (409, True)


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("src", None, "src, which is a directory"),
        ("src/lib", "x", "src/lib, which is a directory"),
        ("README.md/part", "x", "README.md/part, but README.md is a file"),
        ("src/old.ts/a/b", "x", "src/old.ts/a/b, but src/old.ts is a file"),
    ],
)
def test_no_file_or_directory_is_lost_to_another_of_its_name(
    api: Api, github: FakeGitHub, path: str, content: str | None, words: str
) -> None:
    answer = send(api, github, ON_MAIN | {"files": [{"path": path, "content": content}]})
    assert (answer.status, answer.fields) == (422, ["files"])
    assert words in answer.error["message"]
    assert commits(github, "main") == ["The beginning"]


def test_a_file_that_is_deleted_makes_room_for_a_directory_of_its_name(api: Api, github: FakeGitHub) -> None:
    moved = [{"path": "README.md", "content": None}, {"path": "README.md/en", "content": "# Till\n"}]
    assert send(api, github, ON_MAIN | {"files": moved}).status == 200
    assert read(github, "README.md/en") == b"# Till\n"


def test_what_a_new_branch_starts_from_is_told_by_its_name(api: Api, github: FakeGitHub) -> None:
    new = ON_MAIN | {"branch": "new", "create_branch": True, "expected_sha": "0" * 40}
    answer = send(api, github, new)
    assert (answer.status, answer.error["message"].startswith("main is at ")) == (409, True)


def test_all_files_or_none(api: Api, github: FakeGitHub) -> None:
    github.fail_next("/git/trees$", method="POST", status=422, message="tree is too large")
    two = [{"path": "one.txt", "content": "1"}, {"path": "two.txt", "content": "2"}]
    answer = send(api, github, ON_MAIN | {"files": two})
    assert (answer.status, "too large" in answer.error["message"]) == (409, True)
    assert read(github, "one.txt") is None


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"branch": "nowhere"}, 404, "create_branch"),
        ({"branch": "new", "create_branch": True, "base_branch": "nowhere"}, 422, "base_branch"),
        ({"create_pr": True}, 422, "branch"),
        ({"repo": "acme/nothing"}, 404, "acme/nothing"),
    ],
)
def test_what_is_not_there_is_told(api: Api, github: FakeGitHub, change: Any, status: int, words: str) -> None:
    answer = send(api, github, ON_MAIN | change)
    assert answer.status == status
    assert words in answer.error["message"]


def test_a_token_that_may_not_write_is_told_so(api: Api, github: FakeGitHub) -> None:
    answer = send(api, github, ON_MAIN, by="rob")
    assert (answer.status, answer.error["type"]) == (403, "permission_error")
    assert "not accessible" in answer.error["message"]


def test_a_token_that_github_does_not_know_is_told_so(api: Api, github: FakeGitHub) -> None:
    answer = api.call("POST", "/github/commit", ON_MAIN, {"x-github-token": "ghp_wrong"})
    assert (answer.status, answer.error["type"]) == (403, "permission_error")


def test_without_a_token_of_github_nothing_is_asked_of_it(api: Api, github: FakeGitHub) -> None:
    answer = api.call("POST", "/github/commit", ON_MAIN)
    assert (answer.status, answer.error["type"]) == (401, "authentication_error")
    assert "X-GitHub-Token" in answer.error["message"]
    assert github.calls == []


def test_a_rate_limit_that_lasts_is_told_before_the_caller_gives_up(api: Api, github: FakeGitHub) -> None:
    github.fail_next("/git/ref/", status=403, headers={"Retry-After": "45"}, message="secondary rate limit")
    answer = send(api, github, ON_MAIN)
    assert (answer.status, answer.error["retryable"]) == (503, True)
    assert api.pauses == []


def files(*given: Any) -> dict[str, Any]:
    return {"files": list(given)}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (files(), "files"),
        (files({"path": "a", "content": "1"}, {"path": "a", "content": None}), "files"),
        (files({"path": "a", "content": "1"}, {"path": "a/b", "content": "1"}), "files"),
        (files({"path": "a"}), "files.0.content"),
        (files({"path": "../a", "content": ""}), "files.0.path"),
        (files({"path": "/a", "content": ""}), "files.0.path"),
        (files({"path": "a//b", "content": ""}), "files.0.path"),
        (files({"path": "a/", "content": ""}), "files.0.path"),
        (files({"path": ".git/config", "content": ""}), "files.0.path"),
        (files({"path": "sub/.GIT/hooks/x", "content": ""}), "files.0.path"),
        (files({"path": "a\nb", "content": ""}), "files.0.path"),
        (files({"path": "a", "content": "%%%", "encoding": "base64"}), "files.0.content"),
        (files({"path": "a", "content": "", "encoding": "latin-1"}), "files.0.encoding"),
        (files(*({"path": f"f{n}", "content": ""} for n in range(101))), "files"),
        ({"repo": "https://github.com/acme/till"}, "repo"),
        ({"repo": "acme/.."}, "repo"),
        ({"branch": "-x"}, "branch"),
        ({"message": " "}, "message"),
        ({"expected_sha": "main"}, "expected_sha"),
        ({"pr_title": ""}, "pr_title"),
        ({"force": True}, "force"),
    ],
)
def test_a_wrong_field_is_named(api: Api, change: dict[str, Any], field: str) -> None:
    answer = api.call("POST", "/github/commit", ON_MAIN | change, {"x-github-token": "t"})
    assert (answer.status, answer.error["type"]) == (422, "validation_error")
    assert answer.fields == [field]
