"""Who may do what on the fake GitHub: the App, its installations, people, and git itself."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING, Any

import jwt
import pytest

from tests.unit.fake_github.conftest import APP_ID, REPO, World

if TYPE_CHECKING:
    from pathlib import Path


def test_the_app_knows_itself_and_its_installations(world: World) -> None:
    token = world.app_token()
    assert world.api("GET", "/app", token=token).json()["id"] == APP_ID
    [installation] = world.api("GET", "/app/installations", token=token).json()
    assert installation["id"] == world.installation
    assert world.api("GET", f"/app/installations/{world.installation}", token=token).json() == installation
    assert world.api("GET", f"/repos/{REPO}/installation", token=token).json() == installation


def test_a_jwt_by_another_key_is_refused(world: World) -> None:
    claims = {"iss": str(APP_ID), "iat": int(time.time()), "exp": int(time.time()) + 60}
    forged = jwt.encode(claims, "x" * 32, "HS256")
    assert world.api("GET", "/app", token=forged).status_code == 401
    assert world.api("GET", "/app", token=world.app_token()[:-4] + "AAAA").status_code == 401


@pytest.mark.parametrize(
    "claims",
    [{"exp": 1}, {"exp": 2**33}, {"iat": 2**33}, {"iss": "12"}],
    ids=["expired", "good for longer than ten minutes", "from the future", "of another App"],
)
def test_a_jwt_with_wrong_claims_is_refused(world: World, claims: dict[str, Any]) -> None:
    assert world.api("GET", "/app", token=world.app_token(**claims)).status_code == 401


def test_neither_kind_of_credential_does_for_the_other(world: World) -> None:
    assert world.api("GET", "/app", token=world.installation_token()).status_code == 401
    assert world.api("GET", f"/repos/{REPO}", token=world.app_token()).status_code == 401


def test_a_token_is_narrowed_to_repositories_and_permissions(world: World) -> None:
    world.github.add_repository("acme/other")
    world.github.fake("PATCH", f"/installations/{world.installation}", {"repositories": [REPO, "acme/other"]})
    token = world.installation_token(repositories=["till"], permissions={"issues": "write", "contents": "read"})
    names = world.api("GET", "/installation/repositories", token=token).json()["repositories"]
    assert [one["full_name"] for one in names] == [REPO]
    assert world.api("GET", "/repos/acme/other", token=token).status_code == 404
    assert world.api("POST", f"/repos/{REPO}/issues", {"title": "x"}, token=token).status_code == 201
    refused = world.api("POST", f"/repos/{REPO}/git/blobs", {"content": "x"}, token=token)
    assert (refused.status_code, refused.json()["message"]) == (403, "Resource not accessible by integration")


def test_who_may_write_pull_requests_may_speak_on_them_and_on_no_issue(world: World) -> None:
    token = world.installation_token(permissions={"pull_requests": "write"})
    issue = world.github.open_issue(REPO, "Rounding", by="ann")
    world.github.commit(REPO, "topic", {"till.py": "x"})
    pull = world.github.open_pull(REPO, "topic", by="ann")
    said = world.api("POST", f"/repos/{REPO}/issues/{pull}/comments", {"body": "hello"}, token=token)
    edit = world.api("PATCH", f"/repos/{REPO}/issues/comments/{said.json()['id']}", {"body": "hi"}, token=token)
    refused = world.api("POST", f"/repos/{REPO}/issues/{issue}/comments", {"body": "hello"}, token=token)
    assert (said.status_code, edit.status_code, refused.status_code) == (201, 200, 403)


@pytest.mark.parametrize("body", [{"repositories": ["nowhere"]}, {"permissions": {"administration": "write"}}])
def test_a_token_for_more_than_is_granted_is_refused(world: World, body: dict[str, Any]) -> None:
    path = f"/app/installations/{world.installation}/access_tokens"
    assert world.api("POST", path, body, token=world.app_token()).status_code == 422


def test_a_token_runs_out_after_an_hour_of_the_fakes_own_clock(world: World) -> None:
    token = world.installation_token()
    world.github.advance(3599)
    assert world.api("GET", f"/repos/{REPO}", token=token).status_code == 200
    world.github.advance(2)
    assert world.api("GET", f"/repos/{REPO}", token=token).status_code == 401
    assert world.api("GET", f"/repos/{REPO}", token=world.installation_token()).status_code == 200


def test_a_suspended_installation_can_do_nothing_until_it_is_back(world: World) -> None:
    token = world.installation_token()
    world.github.fake("PATCH", f"/installations/{world.installation}", {"suspended": True})
    assert world.api("GET", f"/repos/{REPO}", token=token).status_code == 403
    path = f"/app/installations/{world.installation}/access_tokens"
    assert world.api("POST", path, token=world.app_token()).status_code == 403
    world.github.fake("PATCH", f"/installations/{world.installation}", {"suspended": False})
    assert world.api("GET", f"/repos/{REPO}", token=token).status_code == 200
    assert world.events()[-2:] == ["installation.suspend", "installation.unsuspend"]


def test_an_app_that_was_uninstalled_is_gone(world: World) -> None:
    token = world.installation_token()
    world.github.fake("DELETE", f"/installations/{world.installation}")
    assert world.api("GET", f"/repos/{REPO}", token=token).status_code == 401
    assert world.api("GET", f"/repos/{REPO}/installation", token=world.app_token()).status_code == 404
    world.github.open_issue(REPO, "Nobody hears this", by="ann")
    assert world.events()[-1] == "installation.deleted"


def test_the_app_hears_which_repositories_it_was_given_and_lost(world: World) -> None:
    world.github.add_repository("acme/other")
    world.github.fake("PATCH", f"/installations/{world.installation}", {"repositories": ["acme/other"]})
    assert world.events()[-2:] == ["installation_repositories.added", "installation_repositories.removed"]


@pytest.mark.parametrize(("login", "level"), [("ann", "write"), ("rob", "read"), ("eve", "none"), ("acme", "admin")])
def test_what_a_person_may_is_told(world: World, login: str, level: str) -> None:
    path = f"/repos/{REPO}/collaborators/{login}/permission"
    answer = world.api("GET", path, token=world.installation_token()).json()
    assert (answer["permission"], answer["user"]["login"]) == (level, login)


def test_people_see_and_change_no_more_than_they_may(world: World) -> None:
    eve, rob = world.github.token("eve"), world.github.token("rob")
    assert world.api("GET", f"/repos/{REPO}", token=eve).status_code == 404
    assert world.api("GET", f"/repos/{REPO}").status_code == 404
    assert world.api("GET", f"/repos/{REPO}", token=rob).json()["permissions"]["push"] is False
    assert world.api("POST", f"/repos/{REPO}/git/blobs", {"content": "x"}, token=rob).status_code == 403
    assert world.api("GET", f"/repos/{REPO}", token="ghp_nobody").status_code == 401
    narrow = world.github.token("ann", permissions={"issues": "write"})
    assert world.api("POST", f"/repos/{REPO}/git/blobs", {"content": "x"}, token=narrow).status_code == 403


def test_a_person_is_shown(world: World) -> None:
    assert world.github.call("GET", "/user", by="ann")["login"] == "ann"
    assert world.github.call("GET", "/users/rob", by="ann")["login"] == "rob"


def test_an_archived_repository_is_read_only(world: World) -> None:
    number = world.github.open_issue(REPO, "Before", by="ann")
    world.github.fake("PATCH", f"/repos/{REPO}", {"archived": True})
    answer = world.api(
        "POST", f"/repos/{REPO}/issues/{number}/comments", {"body": "x"}, token=world.github.token("ann")
    )
    assert answer.status_code == 403
    assert world.api("GET", f"/repos/{REPO}", token=world.github.token("ann")).json()["archived"] is True


def test_a_renamed_repository_sends_to_its_new_name(world: World) -> None:
    world.github.fake("PATCH", f"/repos/{REPO}", {"name": "register"})
    token = world.github.token("ann")
    moved = world.api("GET", f"/repos/{REPO}/issues?state=all", token=token)
    assert moved.status_code == 301
    assert moved.headers["Location"] == f"{world.github.api_url}/repos/acme/register/issues?state=all"
    assert world.api("POST", f"/repos/{REPO}/issues", {"title": "x"}, token=token).status_code == 307
    assert world.api("GET", "/repos/acme/register", token=token).status_code == 200


# ---- rate limits and trouble


def test_the_primary_limit_counts_down_and_says_when_it_ends(world: World) -> None:
    token = world.github.token("ann")
    assert world.api("GET", f"/repos/{REPO}", token=token).headers["X-RateLimit-Remaining"] == "4999"
    world.github.fake("POST", "/rate_limit", {"remaining": 1})
    assert world.api("GET", f"/repos/{REPO}", token=token).headers["X-RateLimit-Remaining"] == "0"
    refused = world.api("GET", f"/repos/{REPO}", token=token)
    assert (refused.status_code, refused.headers["X-RateLimit-Remaining"]) == (403, "0")
    assert int(refused.headers["X-RateLimit-Reset"]) > time.time()
    world.github.advance(3601)
    assert world.api("GET", "/rate_limit", token=token).json()["rate"]["remaining"] == 4999


def test_a_failure_happens_as_often_as_it_was_ordered(world: World) -> None:
    order = {"status": 403, "headers": {"Retry-After": "7"}, "message": "You have exceeded a secondary rate limit."}
    world.github.fail_next("/issues", method="GET", count=2, **order)
    token = world.github.token("ann")
    answers = [world.api("GET", f"/repos/{REPO}/issues", token=token) for _ in range(3)]
    assert [one.status_code for one in answers] == [403, 403, 200]
    assert answers[0].headers["Retry-After"] == "7"
    calls = [(call["method"], call["path"], call["status"]) for call in world.github.calls]
    assert calls == [("GET", f"/repos/{REPO}/issues", status) for status in (403, 403, 200)]
    world.github.fake("DELETE", "/calls")
    assert world.github.calls == []


def test_a_connection_is_cut_after_the_work_was_done(world: World) -> None:
    world.github.fail_next("/issues", cut=True)
    with pytest.raises(Exception, match=r"disconnected|reset"):
        world.api("POST", f"/repos/{REPO}/issues", {"title": "Once"}, token=world.github.token("ann"))
    assert len(world.as_ann("GET", "/issues")) == 1


def test_an_ordered_failure_can_be_called_off(world: World) -> None:
    world.github.fail_next(".*", status=500, count=9)
    world.github.fake("DELETE", "/failures")
    assert world.api("GET", f"/repos/{REPO}", token=world.github.token("ann")).status_code == 200


def test_what_is_not_served_is_not_found(world: World) -> None:
    assert world.api("GET", "/repos/acme/till/teapots", token=world.github.token("ann")).status_code == 404


# ---- deliveries


def test_a_delivery_that_failed_is_listed_and_sent_again_under_the_same_guid(world: World) -> None:
    world.github.settle()
    world.receiver.status = 500
    world.github.open_issue(REPO, "Lost", by="ann")
    world.github.settle()
    token = world.app_token()
    failed = world.api("GET", "/app/hook/deliveries", token=token, params={"status": "failure"}).json()
    assert [(one["event"], one["status_code"]) for one in failed] == [("issues", 500)]
    world.receiver.status = 202
    again = world.api("POST", f"/app/hook/deliveries/{failed[0]['id']}/attempts", token=token)
    assert again.status_code == 202
    world.github.settle()
    newest = world.api("GET", "/app/hook/deliveries", token=token).json()[0]
    assert (newest["guid"], newest["redelivery"], newest["status"]) == (failed[0]["guid"], True, "OK")
    whole = world.api("GET", f"/app/hook/deliveries/{newest['id']}", token=token).json()
    assert whole["request"]["payload"]["issue"]["title"] == "Lost"
    bodies = [body for headers, body in world.receiver.received if headers["X-GitHub-Delivery"] == newest["guid"]]
    assert len(bodies) == 2
    assert bodies[0] == bodies[1]


def test_deliveries_come_in_pages(world: World) -> None:
    world.github.fake("POST", "/ping")
    first = world.api("GET", "/app/hook/deliveries", token=world.app_token(), params={"per_page": 1})
    second = world.github.http.get(first.links["next"]["url"], headers={"Authorization": f"Bearer {world.app_token()}"})
    assert [first.json()[0]["event"], second.json()[0]["event"]] == ["ping", "installation"]


def test_nobody_to_deliver_to_is_a_failed_delivery(world: World) -> None:
    world.github.set_app(webhook_url="http://127.0.0.1:1/nobody")
    world.github.open_issue(REPO, "Lost", by="ann")
    world.github.settle()
    assert world.github.deliveries[-1]["status_code"] == 0


# ---- git


def git(*words: str, at: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": "/usr/bin:/bin", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent",
        "GIT_AUTHOR_NAME": "ann", "GIT_AUTHOR_EMAIL": "a@example.com",
        "GIT_COMMITTER_NAME": "ann", "GIT_COMMITTER_EMAIL": "a@example.com",
    }  # fmt: skip
    return subprocess.run(["git", *words], cwd=at, env=environment, capture_output=True, text=True, check=False)


def remote(world: World, token: str) -> str:
    return world.github.url.replace("://", f"://x-access-token:{token}@") + f"/{REPO}.git"


@pytest.fixture
def clone(world: World, tmp_path: Path) -> Path:
    done = git("clone", "-q", remote(world, world.installation_token()), str(tmp_path / "clone"), at=tmp_path)
    assert done.returncode == 0, done.stderr
    git("commit", "-q", "--allow-empty", "-m", "more", at=tmp_path / "clone")
    return tmp_path / "clone"


def test_a_push_arrives_and_is_told(world: World, clone: Path) -> None:
    done = git("push", "-q", remote(world, world.installation_token()), "HEAD:refs/heads/topic", at=clone)
    assert done.returncode == 0, done.stderr
    assert world.as_ann("GET", "/branches/topic")["commit"]["commit"]["message"] == "more"
    assert world.events()[-2:] == ["push.None", "check_suite.requested"]


def test_a_push_can_be_made_to_fail(world: World, clone: Path) -> None:
    world.github.fail_next("git-receive-pack", status=503)
    target = remote(world, world.installation_token())
    assert "503" in git("push", "-q", target, "HEAD:refs/heads/topic", at=clone).stderr
    assert git("push", "-q", target, "HEAD:refs/heads/topic", at=clone).returncode == 0


def test_a_push_without_contents_write_is_refused(world: World, clone: Path) -> None:
    token = world.installation_token(permissions={"contents": "read"})
    done = git("push", "-q", remote(world, token), "HEAD:refs/heads/topic", at=clone)
    assert done.returncode != 0
    assert "403" in done.stderr
    assert [one["name"] for one in world.as_ann("GET", "/branches")] == ["main"]


def test_a_push_to_a_protected_branch_is_refused(world: World, clone: Path) -> None:
    world.github.fake("PATCH", f"/repos/{REPO}", {"protected": ["main"]})
    done = git("push", "-q", remote(world, world.installation_token()), "HEAD:refs/heads/main", at=clone)
    assert "GH006" in done.stderr
    assert (
        git("push", "-q", remote(world, world.installation_token()), "HEAD:refs/heads/topic", at=clone).returncode == 0
    )


def test_a_clone_needs_a_token_that_may_read(world: World, tmp_path: Path) -> None:
    assert "could not read Username" in git("clone", "-q", f"{world.github.url}/{REPO}.git", "a", at=tmp_path).stderr
    assert "not found" in git("clone", "-q", remote(world, world.github.token("eve")), "b", at=tmp_path).stderr
