"""Runs from GitHub that are steered by comments, that CI finds fault with, or under which the ground moves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.e2e.hub import CHECKED
from tests.e2e.support import (
    finishes,
    git,
    new_task,
    of_type,
    plans,
    requests_for,
    sandbox_processes,
    shell,
    types_of,
    wait_for,
    writes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.conftest import Stack
    from tests.e2e.hub import Asked, Place

WIPE = "rm -rf ./* && echo wiped"  # asks for an approval
BUSY = "sleep 100"
CI = {
    **CHECKED,
    ".github/workflows/ci.yml": "on: push\n",
    ".sandpiper.yml": "checks: ['sh check.sh']\nfollow_ci: true\n",
}


def test_people_who_may_write_steer_a_run_by_comments(stack: Stack, place: Place) -> None:
    task = new_task(stack, plans(), shell(WIPE), shell(WIPE), shell(BUSY), finishes())
    asked = place.ask(place.issue(), f"/implement {task}")
    first = asked.approval()
    asked.status("✋ asks for your approval", WIPE, f"/approve {first['id']}")
    meddled = place.comment(asked.number, "/approve", by="rob")
    assert place.reactions(meddled) == ["confused"]
    said = place.comment(asked.number, f"> {WIPE}\n\nMind the gap")
    assert place.reactions(said) == ["+1"]  # by then the run has it; what is sent at once may come in any order
    rejected = place.comment(asked.number, f"/reject {first['id']} not all of it")
    second = wait_for(lambda: found if (found := asked.approval())["id"] != first["id"] else None)
    assert second["shown"]["command"] == WIPE
    approved = place.comment(asked.number, "/approve")
    wait_for(lambda: BUSY in str(asked.person.events(asked.run_id)) or None)
    looked, cancelled = (place.comment(asked.number, word) for word in ("/status", "/cancel"))
    assert asked.end()["status"] == "cancelled"
    asked.status("⏹️ cancelled")
    assert [place.reactions(one) for one in (rejected, approved, looked, cancelled)] == [["+1"]] * 4
    told = str(requests_for(stack, task)[-1]["messages"])
    assert ("Mind the gap" in told, "not all of it" in told, "wiped" in told) == (True, True, True)
    late = place.comment(asked.number, "/say too late")
    assert place.reactions(late) == ["confused"]
    wait_for(lambda: any(one["body"].startswith(f"@{place.writer} ") for one in place.said(asked.number)) or None)


def test_a_red_ci_is_repaired_and_nothing_runs_while_it_works(stack: Stack, new_place: Callable[..., Place]) -> None:
    place = new_place(CI)
    task = new_task(
        stack, plans("sh check.sh"), writes("answer", "42\n"), finishes(), writes("answer", "43\n"), finishes("Now 43.")
    )
    asked = place.ask(place.issue(), f"/implement {task}")
    heads: list[str] = []
    for conclusion in ("failure", "success"):
        asked.status("🔎 waits for CI")
        heads.append(waiting_head(asked, heads))
        wait_for(lambda: None if sandbox_processes(asked.run_id) else True)
        place.github.finish_ci(place.name, heads[-1], conclusion=conclusion, log="FAILED: 42 is not 43\n")
    run = asked.end()
    assert (run["status"], run["attempt"]) == ("completed", 3)
    asked.status("✅ done")
    assert place.show("answer", run["result"]["commit"]["branch"]) == "43"
    assert len(place.api("/pulls?state=all")) == 1
    assert "FAILED: 42 is not 43" in str(requests_for(stack, task)[-1]["messages"])
    assert git("rev-parse", f"{heads[1]}^", at=place.git_dir) == heads[0]


def waiting_head(asked: Asked, before: list[str]) -> str:
    """Of its branch, when the run waits for what CI says about it."""

    def look() -> str | None:
        asked.person.suspended(asked.run_id)
        head = str(asked.place.api("/pulls")[0]["head"]["sha"])
        return None if head in before else head

    return wait_for(look)


def move(place: Place, _number: int) -> None:
    place.github.commit(place.name, "topic", {"other": "theirs\n"}, by=place.writer)


def force_push(place: Place, _number: int) -> None:
    place.github.commit(place.name, "topic", {"other": "theirs\n"}, by=place.writer, force=True)


def close(place: Place, number: int) -> None:
    place.api(f"/pulls/{number}", "PATCH", {"state": "closed"})


def protect(place: Place, _number: int) -> None:
    place.github.fake("PATCH", f"/repos/{place.name}", {"protected": ["topic"]})


def archive(place: Place, _number: int) -> None:
    place.github.fake("PATCH", f"/repos/{place.name}", {"archived": True})


def merge(place: Place, number: int) -> None:
    place.api(f"/pulls/{number}/merge", "PUT")


def delete(place: Place, _number: int) -> None:
    place.api("/git/refs/heads/topic", "DELETE")


def rename(place: Place, _number: int) -> None:
    place.github.fake("PATCH", f"/repos/{place.name}", {"name": "store"})


def suspend(place: Place, _number: int) -> None:
    place.github.fake("PATCH", f"/installations/{place.installation}", {"suspended": True})


def uninstall(place: Place, _number: int) -> None:
    place.github.fake("DELETE", f"/installations/{place.installation}")


MEANWHILE: dict[Callable[[Place, int], None], tuple[str, str]] = {
    move: ("completed", "had moved"),
    force_push: ("failed", "was force-pushed while the run was working"),
    close: ("failed", "was closed while the run was working"),
    protect: ("failed", "Protected branch update failed"),
    archive: ("failed", "archived"),
    merge: ("failed", "was merged while the run was working"),
    delete: ("failed", "was closed while the run was working"),  # by GitHub, which closes what has no branch
    rename: ("completed", ""),
    suspend: ("failed", "suspended"),
    uninstall: ("failed", "GitHub answered"),  # 401 to a token that it knows, 404 to who wants a new one
}
UNHEARD = (archive, suspend, uninstall)  # nobody can write there any more


def test_what_happens_on_github_meanwhile_is_said_and_the_work_is_kept(
    stack: Stack, new_place: Callable[..., Place]
) -> None:
    """All at once: each waits for an approval until the ground has moved under it."""
    asked = {}
    for happens in MEANWHILE:
        place = new_place()
        task = new_task(stack, plans("sh check.sh"), writes("answer", "42\n"), shell(WIPE), finishes("It is 42."))
        asked[happens] = place.ask(place.pull({"more": "yes\n"}), f"/fix {task}")
    for happens, one in asked.items():
        approval = one.approval()
        happens(one.place, one.number)
        answer = one.person.http.post(f"/runs/{one.run_id}/approvals/{approval['id']}", json={"decision": "reject"})
        assert answer.status_code == 200
    for happens, (outcome, words) in MEANWHILE.items():
        check_outcome(asked[happens], happens.__name__, outcome, words)
    for happens in set(MEANWHILE) - set(UNHEARD):
        asked[happens].status("✅ done" if MEANWHILE[happens][0] == "completed" else "❌ failed")
    assert asked[rename].place.show("answer", "topic") == "42"


def check_outcome(asked: Asked, name: str, outcome: str, words: str) -> None:
    run = asked.end()
    told = [run["error"], *of_type(asked.person.events(asked.run_id), "warning")]
    assert (name, run["status"]) == (name, outcome), told
    assert words in json.dumps(told), name
    assert "+42" in asked.person.download(asked.run_id, "diff").text


def test_a_bumpy_github_and_a_token_that_runs_out_lose_nothing_and_make_nothing_twice(
    stack: Stack, place: Place
) -> None:
    github = place.github
    path = f"/repos/{place.name}"
    github.fail_next(f"{path}/collaborators", status=502)
    slow_down = {"message": "You have exceeded a secondary rate limit", "headers": {"Retry-After": "1"}}
    github.fail_next(f"{path}/issues/comments/.*/reactions", status=403, **slow_down)
    github.fail_next(f"{path}/pulls$", method="POST", status=503)
    github.fail_next(f"{path}/issues/.*/labels", method="POST", status=500)
    # GitHub's own machines get to know a new token one after the other
    github.fail_next(f"{path}/issues/[0-9]+$", status=401, message="Bad credentials")
    github.fail_next(f"{path}/issues/[0-9]+/comments$", method="GET", status=403, message="Resource not accessible")
    github.fail_next(f"/{place.name}.*/info/refs", status=401, count=2)
    github.fake("POST", "/clock", {"token_seconds": 3})
    try:
        task = new_task(stack, plans("sh check.sh"), shell("sleep 4"), writes("answer", "42\n"), finishes())
        asked = place.ask(place.issue(), f"/implement {task}")
        assert asked.end()["status"] == "completed"
    finally:
        github.fake("POST", "/clock", {"token_seconds": 3600})
    asked.status("✅ done")
    assert (len(place.api("/pulls?state=all")), len(place.said(asked.number))) == (1, 1)
    assert place.reactions(asked.comment_id) == ["eyes"]
    told = asked.person.events(asked.run_id)
    assert "pr_opened" in types_of(told)
    assert of_type(told, "warning") == []
    assert [label["name"] for label in place.api("/pulls")[0]["labels"]] == ["sandpiper"]
