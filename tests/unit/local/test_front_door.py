from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sandpiper_local.front_door.answers import error_response, gateway_message
from sandpiper_local.front_door.git_http import basic_token
from sandpiper_local.front_door.local_repos import find_local_repo, local_path, share_repo
from sandpiper_local.front_door.shares import TOKEN_SECONDS, NotARepository, Shares


class Hours:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "my project"
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    return path


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def test_the_same_path_is_always_the_same_share(repository: Path) -> None:
    first = Shares().register(repository)
    second = Shares().register(repository / ".." / repository.name)
    assert first == second
    assert first.url_path.endswith("/my-project.git")


def test_a_bare_repository_is_shared_under_its_name_without_the_suffix(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "thing.git")], check=True)
    share = Shares().register(tmp_path / "thing.git")
    assert (share.name, share.git_dir) == ("thing", tmp_path / "thing.git")


def test_a_directory_inside_a_repository_is_none(repository: Path) -> None:
    inside = repository / "inside"
    inside.mkdir()
    with pytest.raises(NotARepository, match="no git repository"):
        Shares().register(inside)


def test_a_path_that_does_not_exist_is_no_repository(tmp_path: Path) -> None:
    with pytest.raises(NotARepository, match="no directory"):
        Shares().register(tmp_path / "nowhere")


def test_a_token_opens_its_own_share_and_no_other(repository: Path, tmp_path: Path) -> None:
    other_path = tmp_path / "other"
    subprocess.run(["git", "init", "-q", str(other_path)], check=True)
    shares = Shares()
    mine, other = shares.register(repository), shares.register(other_path)
    token = shares.grant(mine)
    assert shares.allows(mine, token)
    assert not shares.allows(other, token)
    assert not shares.allows(mine, token + "x")


def test_a_token_ends_after_a_day_or_when_it_is_revoked(repository: Path) -> None:
    clock = Hours()
    shares = Shares(clock)
    share = shares.register(repository)
    old, revoked = shares.grant(share), shares.grant(share)
    shares.revoke(share, revoked)
    assert not shares.allows(share, revoked)
    clock.now += TOKEN_SECONDS - 1
    assert shares.allows(share, old)
    clock.now += 1
    assert not shares.allows(share, old)


def test_a_token_that_was_let_in_twice_is_shut_out_the_second_time_only(repository: Path) -> None:
    shares = Shares()
    share = shares.register(repository)
    for _ in range(2):
        shares.grant(share, "brought-along")
    shares.revoke(share, "brought-along")
    assert shares.allows(share, "brought-along")
    shares.revoke(share, "brought-along")
    assert not shares.allows(share, "brought-along")


def test_tokens_are_kept_as_hashes(repository: Path) -> None:
    shares = Shares()
    token = shares.grant(shares.register(repository))
    assert token not in repr(vars(shares))


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (basic("x-access-token:secret"), "secret"),
        (basic("x-access-token:with:colon"), "with:colon"),
        (basic("x-access-token:"), None),
        (basic("somebody:secret"), None),
        ("Bearer secret", None),
        ("Basic not-base64!", None),
        ("", None),
    ],
)
def test_a_token_is_the_password_of_one_user(header: str, token: str | None) -> None:
    assert basic_token(header) == token


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"repo": "/a/b"}, "repo"),
        ({"repo": "file:///a/b"}, "repo"),
        ({"params": {"repo": "/a/b"}}, "params.repo"),
    ],
)
def test_an_absolute_path_is_found_where_the_body_has_it(body: dict[str, Any], field: str) -> None:
    found = find_local_repo(json.dumps(body).encode())
    assert found is not None
    assert (found.field, found.path) == (field, Path("/a/b"))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[1]",
        b'{"repo": "owner/name"}',
        b'{"repo": 5}',
        b'{"params": "x"}',
        b'{"repo": "../x"}',
        b"[" * 100_000,
    ],
)
def test_everything_else_is_left_to_the_api(body: bytes) -> None:
    assert find_local_repo(body) is None


def test_an_escaped_file_url_is_unescaped() -> None:
    assert local_path("file:///a%20b/c") == Path("/a b/c")


def test_a_path_with_a_null_byte_is_no_path() -> None:
    assert local_path("/a\0b") is None


def test_sharing_changes_the_repository_and_nothing_else(repository: Path) -> None:
    body = json.dumps({"type": "bug-fix", "params": {"repo": str(repository), "n": 1}}).encode()
    repo = find_local_repo(body)
    assert repo is not None
    shares = Shares()
    shared = asyncio.run(share_repo(body, repo, shares, base_url="http://127.0.0.1:1", token=None))
    url = f"http://127.0.0.1:1{shared.share.url_path}"
    assert json.loads(shared.body) == {"type": "bug-fix", "params": {"repo": url, "n": 1}}
    assert shares.allows(shared.share, shared.token)


def test_a_token_that_the_caller_brought_is_the_one_that_opens_the_share(repository: Path) -> None:
    body = json.dumps({"repo": str(repository)}).encode()
    repo = find_local_repo(body)
    assert repo is not None
    shared = asyncio.run(share_repo(body, repo, Shares(), base_url="http://h", token="theirs"))
    assert shared.token == "theirs"


def test_only_what_the_gateway_says_itself_is_reshaped() -> None:
    assert gateway_message(401, b'{"message":"Unauthorized"}') == "Unauthorized"
    assert gateway_message(403, b'{"Message":"Forbidden"}') == "Forbidden"
    assert gateway_message(200, b'{"message":"fine"}') is None
    assert gateway_message(404, b'{"success":false,"error":{"message":"x"}}') is None
    assert gateway_message(500, b"<html>") is None


def test_an_error_of_our_own_has_the_one_shape() -> None:
    response = error_response(422, "wrong", details=[{"field": "repo", "message": "wrong"}])
    document = json.loads(response.text or "")
    request_id = document["error"].pop("request_id")
    assert request_id
    assert document == {
        "success": False,
        "error": {
            "type": "validation_error",
            "message": "wrong",
            "retryable": False,
            "details": [{"field": "repo", "message": "wrong"}],
        },
    }
