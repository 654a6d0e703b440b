"""Objects, refs, files and checks on the fake GitHub."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest

from sandpiper_local.fake_github.server import served_routes
from tests.unit.fake_github.conftest import FILES, REPO, World
from tests.unit.fake_github.schemas import described_operations


def test_github_describes_every_route_that_is_served() -> None:
    assert {f"{method} {path}" for method, path in served_routes()} == described_operations()


def head(world: World, branch: str = "main") -> str:
    return str(world.as_ann("GET", f"/git/ref/heads/{branch}")["object"]["sha"])


def commit(world: World, tree: list[dict[str, Any]], message: str = "By hand") -> dict[str, Any]:
    parent = head(world)
    base = world.as_ann("GET", f"/git/commits/{parent}")["tree"]["sha"]
    made = world.as_ann("POST", "/git/trees", {"base_tree": base, "tree": tree})
    return dict(world.as_ann("POST", "/git/commits", {"message": message, "tree": made["sha"], "parents": [parent]}))


def test_blobs_trees_commits_and_refs_make_a_branch(world: World) -> None:
    binary = bytes(range(256))
    blob = world.as_ann("POST", "/git/blobs", {"content": base64.b64encode(binary).decode(), "encoding": "base64"})
    made = commit(world, [
        {"path": "image.bin", "mode": "100644", "type": "blob", "sha": blob["sha"]},
        {"path": "docs/new.md", "mode": "100644", "type": "blob", "content": "new\n"},
        {"path": "README.md", "mode": "100644", "type": "blob", "sha": None},
    ])  # fmt: skip
    world.as_ann("POST", "/git/refs", {"ref": "refs/heads/by/hand", "sha": made["sha"]})
    paths = [entry["path"] for entry in world.as_ann("GET", f"/git/trees/{made['tree']['sha']}?recursive=1")["tree"]]
    assert paths == ["docs", "docs/new.md", "image.bin", "till.py"]
    read = world.as_ann("GET", f"/git/blobs/{blob['sha']}")
    assert base64.b64decode(read["content"]) == binary
    assert world.as_ann("GET", "/git/ref/heads/by/hand")["object"]["sha"] == made["sha"]
    assert [one["ref"] for one in world.as_ann("GET", "/git/matching-refs/heads/by")] == ["refs/heads/by/hand"]
    assert world.as_ann("GET", "/branches/by/hand")["name"] == "by/hand"
    assert made["author"]["name"] == "ann"


def test_a_ref_moves_forward_only_unless_forced(world: World) -> None:
    old, made = head(world), commit(world, [{"path": "a", "mode": "100644", "type": "blob", "content": "a"}])
    assert world.as_ann("PATCH", "/git/refs/heads/main", {"sha": made["sha"]})["object"]["sha"] == made["sha"]
    with pytest.raises(httpx.HTTPStatusError, match="422") as refused:
        world.as_ann("PATCH", "/git/refs/heads/main", {"sha": old})
    assert refused.value.response.json()["message"] == "Update is not a fast forward"
    assert world.as_ann("PATCH", "/git/refs/heads/main", {"sha": old, "force": True})["object"]["sha"] == old


def refused(world: World, method: str, path: str, body: Any = None) -> int:
    return world.api(method, f"/repos/{REPO}{path}", body, token=world.github.token("ann")).status_code


def test_what_can_not_be_is_refused(world: World) -> None:
    tree = {"tree": [{"path": "gone", "mode": "100644", "type": "blob", "sha": None}], "base_tree": head(world)}
    nothing = "0123456789" * 4
    assert refused(world, "POST", "/git/trees", tree) == 422
    assert refused(world, "POST", "/git/trees", {"tree": [{"path": "x", "sha": nothing}]}) == 422
    assert refused(world, "POST", "/git/blobs", {}) == 422
    assert refused(world, "POST", "/git/commits", {"message": "x", "tree": nothing}) == 422
    assert refused(world, "POST", "/git/refs", {"ref": "refs/heads/main", "sha": head(world)}) == 422
    assert refused(world, "POST", "/git/refs", {"ref": "main", "sha": head(world)}) == 422
    assert refused(world, "PATCH", "/git/refs/heads/nothing", {"sha": head(world)}) == 422
    assert refused(world, "GET", "/git/ref/heads/nothing") == 404
    assert refused(world, "GET", "/git/ref/heads/mai") == 404
    assert refused(world, "GET", f"/git/blobs/{nothing}") == 404
    assert refused(world, "GET", "/contents/nothing.py") == 404


def test_a_protected_branch_takes_no_direct_update(world: World) -> None:
    made = commit(world, [{"path": "a", "mode": "100644", "type": "blob", "content": "a"}])
    world.github.fake("PATCH", f"/repos/{REPO}", {"protected": ["main"]})
    assert refused(world, "PATCH", "/git/refs/heads/main", {"sha": made["sha"]}) == 422
    assert refused(world, "DELETE", "/git/refs/heads/main") == 422


def test_files_and_directories_are_read(world: World) -> None:
    world.github.commit(REPO, "main", {"docs/a.md": "a\n", "docs/b.md": "b\n"})
    file = world.as_ann("GET", "/contents/till.py?ref=main")
    assert base64.b64decode(file["content"]).decode() == FILES["till.py"]
    assert [entry["path"] for entry in world.as_ann("GET", "/contents/docs")] == ["docs/a.md", "docs/b.md"]
    headers = {"Accept": "application/vnd.github.raw+json"}
    assert (
        world.api("GET", f"/repos/{REPO}/contents/docs/a.md", token=world.github.token("ann"), headers=headers).text
        == "a\n"
    )


def test_commits_are_listed_shown_and_compared(world: World) -> None:
    first = head(world)
    world.github.commit(REPO, "topic", {"till.py": "short\n", "README.md": None})
    assert len(world.as_ann("GET", "/commits?sha=topic")) == 2
    shown = world.as_ann("GET", "/commits/topic")
    assert {file["filename"]: file["status"] for file in shown["files"]} == {
        "README.md": "removed",
        "till.py": "modified",
    }
    compared = world.as_ann("GET", "/compare/main...topic")
    assert (compared["status"], compared["ahead_by"], compared["merge_base_commit"]["sha"]) == ("ahead", 1, first)


# ---- checks


def test_a_check_run_is_begun_and_ended_with_annotations(world: World) -> None:
    token, sha = world.installation_token(), head(world)

    def api(method: str, path: str, body: Any = None) -> Any:
        answer = world.api(method, f"/repos/{REPO}{path}", body, token=token)
        assert answer.is_success, answer.text
        return answer.json()

    run = api(
        "POST",
        "/check-runs",
        {"name": "sandpiper", "head_sha": sha, "status": "in_progress", "details_url": "https://x.test"},
    )
    note = {"path": "till.py", "start_line": 1, "end_line": 1, "annotation_level": "warning", "message": "hm"}
    output = {"title": "Reviewed", "summary": "One remark", "annotations": [note]}
    done = api("PATCH", f"/check-runs/{run['id']}", {"conclusion": "neutral", "output": output})
    assert (done["status"], done["conclusion"], done["output"]["annotations_count"]) == ("completed", "neutral", 1)
    assert api("GET", f"/check-runs/{run['id']}") == done
    assert api("GET", f"/check-runs/{run['id']}/annotations")[0]["message"] == "hm"
    assert api("GET", f"/commits/{sha}/check-runs")["total_count"] == 1
    [suite] = api("GET", "/commits/main/check-suites")["check_suites"]
    assert api("GET", f"/check-suites/{suite['id']}")["conclusion"] == "success"


def test_only_an_app_makes_check_runs(world: World) -> None:
    assert refused(world, "POST", "/check-runs", {"name": "x", "head_sha": head(world)}) == 403


def test_statuses_are_combined(world: World) -> None:
    sha = head(world)
    for state in ("pending", "success"):
        world.as_ann("POST", f"/statuses/{sha}", {"state": state, "context": "sandpiper"})
    combined = world.as_ann("GET", "/commits/main/status")
    assert (combined["state"], combined["total_count"]) == ("success", 1)
    assert [one["state"] for one in world.as_ann("GET", f"/commits/{sha}/statuses")] == ["success", "pending"]


def test_a_red_ci_is_told_and_its_log_can_be_read(world: World) -> None:
    sha = world.github.commit(REPO, "topic", {"till.py": "broken\n"})
    pull = world.github.open_pull(REPO, "topic", by="ann")
    ci = world.github.finish_ci(REPO, sha, conclusion="failure", log="E  assert 1 == 2\n")
    assert world.events()[-1] == "check_suite.completed"
    [run] = world.as_ann("GET", f"/actions/runs?check_suite_id={ci['check_suite_id']}")["workflow_runs"]
    assert (run["conclusion"], run["pull_requests"][0]["number"]) == ("failure", pull)
    assert world.as_ann("GET", f"/actions/runs/{run['id']}") == run
    [job] = world.as_ann("GET", f"/actions/runs/{run['id']}/jobs")["jobs"]
    assert world.as_ann("GET", f"/actions/jobs/{job['id']}") == job
    [check] = world.as_ann("GET", f"/check-suites/{ci['check_suite_id']}/check-runs")["check_runs"]
    assert (check["id"], check["conclusion"]) == (job["id"], "failure")
    token = world.github.token("ann")
    sent_on = world.api("GET", f"/repos/{REPO}/actions/jobs/{job['id']}/logs", token=token)
    assert sent_on.status_code == 302
    assert world.github.http.get(sent_on.headers["Location"]).text == "E  assert 1 == 2\n"


def test_a_push_opens_a_suite_of_the_apps_own_that_nobody_ends(world: World) -> None:
    sha = world.github.commit(REPO, "topic", {"till.py": "x\n"})
    world.github.finish_ci(REPO, sha, conclusion="success")
    suites = world.as_ann("GET", f"/commits/{sha}/check-suites")["check_suites"]
    assert {suite["app"]["slug"]: suite["status"] for suite in suites} == {
        "sandpiper": "queued", "github-actions": "completed",
    }  # fmt: skip


# ---- pages


def test_a_page_shows_an_issue_and_runs_nothing(world: World) -> None:
    number = world.github.open_issue(REPO, "<script>alert(1)</script>", by="ann")
    world.github.comment(REPO, number, "<img src=x onerror=alert(1)>", by="ann")
    page = world.github.http.get(f"{world.github.url}/{REPO}/issues/{number}")
    assert "&lt;script&gt;" in page.text
    assert "<script" not in page.text
    assert "<img" not in page.text
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_a_page_shows_a_pull_request_with_its_diff(world: World) -> None:
    world.github.commit(REPO, "topic", {"till.py": "short\n"})
    number = world.github.open_pull(REPO, "topic", by="ann")
    assert "+short" in world.github.http.get(f"{world.github.url}/{REPO}/pull/{number}").text
    assert f"{REPO}#{number}" in world.github.http.get(world.github.url).text
    assert world.github.http.get(f"{world.github.url}/{REPO}/pull/99").status_code == 404
