"""Issues, comments, pull requests and reviews on the fake GitHub."""

from __future__ import annotations

import hashlib
import hmac
import json

import httpx
import pytest

from tests.unit.fake_github.conftest import REPO, SECRET, World, changed, remark


def test_a_comment_of_a_person_reaches_the_app_as_github_would_send_it(world: World) -> None:
    number = world.github.open_issue(REPO, "Rounding", "It is off by a cent", by="ann")
    comment = world.github.comment(REPO, number, "/implement it", by="ann")
    world.github.settle()
    [(headers, body)] = [one for one in world.receiver.received if one[0]["X-GitHub-Event"] == "issue_comment"]
    payload = json.loads(body)
    assert headers["X-Hub-Signature-256"] == "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    assert (payload["action"], payload["comment"]["body"]) == ("created", "/implement it")
    assert (payload["comment"]["id"], payload["sender"]["login"]) == (comment["id"], "ann")
    assert payload["installation"]["id"] == world.installation
    assert world.events() == ["installation.created", "issues.opened", "issue_comment.created"]


def test_an_issue_takes_labels_assignees_and_an_end(world: World) -> None:
    issue = world.as_ann("POST", "/issues", {"title": "Rounding", "labels": ["bug"], "assignees": ["rob"]})
    path = f"/issues/{issue['number']}"
    assert [label["name"] for label in world.as_ann("POST", f"{path}/labels", {"labels": ["sandpiper"]})] == [
        "bug",
        "sandpiper",
    ]
    assert [label["name"] for label in world.as_ann("DELETE", f"{path}/labels/bug")] == ["sandpiper"]
    assert len(world.as_ann("GET", f"{path}/labels")) == 1
    world.as_ann("POST", f"{path}/assignees", {"assignees": ["ann"]})
    left = world.as_ann("DELETE", f"{path}/assignees", {"assignees": ["rob"]})
    assert [user["login"] for user in left["assignees"]] == ["ann"]
    assert world.as_ann("PATCH", path, {"state": "closed"})["state_reason"] == "completed"
    assert world.as_ann("GET", "/issues") == []
    assert [one["number"] for one in world.as_ann("GET", "/issues?state=all")] == [issue["number"]]
    told = ["opened", "labeled", "assigned", "labeled", "assigned", "closed"]
    assert world.events()[1:] == [f"issues.{action}" for action in told]


def test_a_comment_is_edited_and_deleted_and_the_app_hears_of_it(world: World) -> None:
    number = world.github.open_issue(REPO, "Rounding", by="ann")
    comment = world.github.comment(REPO, number, "first", by="ann")
    path = f"/issues/comments/{comment['id']}"
    assert world.as_ann("PATCH", path, {"body": "second"})["body"] == "second"
    assert world.as_ann("GET", path)["body"] == "second"
    world.as_ann("DELETE", path)
    assert world.as_ann("GET", f"/issues/{number}/comments") == []
    assert world.events()[-2:] == ["issue_comment.edited", "issue_comment.deleted"]


def test_a_reader_may_comment_but_not_change_the_words_of_others(world: World) -> None:
    number = world.github.open_issue(REPO, "Rounding", by="ann")
    comment = world.github.comment(REPO, number, "mine", by="ann")
    world.github.comment(REPO, number, "and mine", by="rob")
    answer = world.api(
        "PATCH", f"/repos/{REPO}/issues/comments/{comment['id']}", {"body": "x"}, token=world.github.token("rob")
    )
    assert answer.status_code == 403


def test_a_comment_longer_than_github_takes_is_refused(world: World) -> None:
    number = world.github.open_issue(REPO, "Rounding", by="ann")
    world.github.comment(REPO, number, "x" * 65_536, by="ann")
    with pytest.raises(httpx.HTTPStatusError, match="422"):
        world.github.comment(REPO, number, "x" * 65_537, by="ann")


def test_lists_come_in_pages_with_a_link_to_the_next(world: World) -> None:
    number = world.github.open_issue(REPO, "Rounding", by="ann")
    for text in ("one", "two", "three"):
        world.github.comment(REPO, number, text, by="ann")
    path = f"/repos/{REPO}/issues/{number}/comments"
    first = world.api("GET", path, params={"per_page": 2}, token=world.github.token("ann"))
    second = world.github.http.get(
        first.links["next"]["url"], headers={"Authorization": f"Bearer {world.github.token('ann')}"}
    )
    assert [one["body"] for one in first.json() + second.json()] == ["one", "two", "three"]
    assert "next" not in second.links


@pytest.mark.parametrize("kind", ["issue", "comment", "review comment"])
def test_a_reaction_is_given_once_and_taken_back(world: World, pull: int, kind: str) -> None:
    path = {
        "issue": f"/issues/{pull}",
        "comment": f"/issues/comments/{world.github.comment(REPO, pull, 'hello', by='ann')['id']}",
        "review comment": f"/pulls/comments/{remark(world, pull, 10)['id']}",
    }[kind]
    given = world.as_ann("POST", f"{path}/reactions", {"content": "eyes"})
    assert world.as_ann("POST", f"{path}/reactions", {"content": "eyes"}) == given
    assert [one["content"] for one in world.as_ann("GET", f"{path}/reactions")] == ["eyes"]
    world.as_ann("DELETE", f"{path}/reactions/{given['id']}")
    assert world.as_ann("GET", f"{path}/reactions") == []


# ---- pull requests


def test_a_pull_request_shows_what_git_has(world: World, pull: int) -> None:
    view = world.as_ann("GET", f"/pulls/{pull}")
    assert (view["changed_files"], view["additions"], view["deletions"], view["commits"]) == (1, 1, 1, 1)
    assert (view["mergeable"], view["head"]["ref"], view["base"]["ref"]) == (True, "topic", "main")
    [file] = world.as_ann("GET", f"/pulls/{pull}/files")
    assert (file["filename"], file["status"]) == ("till.py", "modified")
    assert "+another line" in file["patch"]
    assert len(world.as_ann("GET", f"/pulls/{pull}/commits")) == 1
    headers = {"Accept": "application/vnd.github.diff"}
    diff = world.api("GET", f"/repos/{REPO}/pulls/{pull}", token=world.github.token("ann"), headers=headers)
    assert diff.text.startswith("diff --git a/till.py b/till.py")
    assert [one["number"] for one in world.as_ann("GET", "/pulls?head=acme:topic&base=main")] == [pull]
    assert [one["number"] for one in world.as_ann("GET", f"/commits/{view['head']['sha']}/pulls")] == [pull]
    assert world.as_ann("GET", f"/issues/{pull}")["pull_request"]["html_url"] == view["html_url"]


def test_there_is_one_pull_request_for_a_branch(world: World, pull: int) -> None:
    with pytest.raises(httpx.HTTPStatusError, match="422") as refused:
        world.github.open_pull(REPO, "topic", by="ann")
    assert "already exists" in refused.value.response.json()["errors"][0]["message"]


def test_a_pull_request_without_commits_is_refused(world: World) -> None:
    world.github.commit(REPO, "same", {}, by="ann")
    world.as_ann(
        "PATCH", "/git/refs/heads/same", {"sha": world.as_ann("GET", "/branches/main")["commit"]["sha"], "force": True}
    )
    with pytest.raises(httpx.HTTPStatusError, match="422"):
        world.github.open_pull(REPO, "same", by="ann")


def test_a_push_moves_the_pull_request_along_and_a_merge_ends_it(world: World, pull: int) -> None:
    sha = world.github.commit(REPO, "topic", changed(12), by="ann")
    assert world.as_ann("GET", f"/pulls/{pull}")["head"]["sha"] == sha
    merged = world.as_ann("PUT", f"/pulls/{pull}/merge", {"sha": sha})
    assert world.as_ann("GET", "/branches/main")["commit"]["sha"] == merged["sha"]
    assert world.as_ann("GET", f"/pulls/{pull}/merge") is None
    assert world.as_ann("GET", f"/pulls/{pull}")["merged"]
    told = [event for event in world.events() if event.startswith(("push", "pull_request"))]
    assert told == [
        "push.None", "pull_request.opened", "push.None", "pull_request.synchronize", "push.None", "pull_request.closed",
    ]  # fmt: skip


def test_a_conflict_is_not_mergeable(world: World, pull: int) -> None:
    world.github.commit(REPO, "main", {"till.py": "quite different\n"})
    assert world.as_ann("GET", f"/pulls/{pull}")["mergeable"] is False
    with pytest.raises(httpx.HTTPStatusError, match="405"):
        world.as_ann("PUT", f"/pulls/{pull}/merge")


def test_a_pull_request_loses_its_branch_and_is_closed(world: World, pull: int) -> None:
    world.as_ann("DELETE", "/git/refs/heads/topic")
    assert world.as_ann("GET", f"/pulls/{pull}")["state"] == "closed"
    assert "pull_request.closed" in world.events()


def test_a_fork_offers_its_branch_and_its_head_can_be_fetched_from_the_base(world: World) -> None:
    world.github.fake("POST", f"/repos/{REPO}/forks", {"owner": "rob"})
    sha = world.github.commit("rob/till", "idea", changed(3), by="rob")
    number = world.github.open_pull(REPO, "rob:idea", by="rob")
    view = world.as_ann("GET", f"/pulls/{number}")
    assert (view["head"]["repo"]["full_name"], view["head"]["repo"]["fork"], view["head"]["sha"]) == (
        "rob/till",
        True,
        sha,
    )
    assert world.as_ann("GET", f"/git/ref/pull/{number}/head")["object"]["sha"] == sha
    moved = world.github.commit("rob/till", "idea", changed(4), by="rob")
    assert world.as_ann("GET", f"/pulls/{number}")["head"]["sha"] == moved


def test_a_pull_request_is_changed_and_closed(world: World, pull: int) -> None:
    world.as_ann("PATCH", f"/pulls/{pull}", {"title": "Better", "body": "Said again"})
    world.as_ann("POST", f"/pulls/{pull}/requested_reviewers", {"reviewers": ["rob"]})
    view = world.as_ann("PATCH", f"/pulls/{pull}", {"state": "closed"})
    assert (view["title"], view["body"], view["state"]) == ("Better", "Said again", "closed")
    assert [user["login"] for user in view["requested_reviewers"]] == ["rob"]
