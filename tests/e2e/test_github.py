"""A comment on GitHub becomes a run: webhook, front door, App, sandbox and back, with all four commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.e2e.support import finishes, new_task, of_type, plans, requests_for, says, tool, types_of, wait_for, writes

if TYPE_CHECKING:
    from tests.e2e.conftest import Stack
    from tests.e2e.hub import Place

REPAIR = (plans("sh check.sh"), writes("answer", "42\n"), finishes("The answer is 42."))
SLIPS = {"answer": "40\nb = 20\nc = 3\n"}
WRONG = {"file": "answer", "line": 2, "severity": "major", "message": "Must be 2.", "suggestion": "b = 2"}
ODD = {"file": "answer", "line": 3, "severity": "minor", "message": "Why three?"}
RESOLVE = "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { id } } }"
BESIDE = {"file": "check.sh", "line": 1, "severity": "minor", "message": "Checks little."}


def reviews(*findings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return plans(), says(tool("finish", status="done", summary="Read it all.", findings=list(findings)))


def test_an_issue_becomes_one_pull_request_however_often_its_comment_is_delivered(stack: Stack, place: Place) -> None:
    task = new_task(stack, *REPAIR)
    asked = place.ask(place.issue(), f"Please!\n\n/implement {task}\nwith @{place.writer} \u202eand <b>care</b>")
    again = place.deliver_again(asked.comment_id, times=5)
    assert {answer.json().get("run_id") for answer in again} == {asked.run_id}
    run = asked.end()
    assert (run["status"], run["error"]) == ("completed", None)
    (pull,) = place.api("/pulls")
    assert run["result"]["pull_request"] == {"number": pull["number"], "url": pull["html_url"], "draft": False}
    assert pull["title"].startswith("feat: ")
    assert (pull["head"]["ref"], pull["base"]["ref"], pull["draft"]) == (
        run["result"]["commit"]["branch"],
        "main",
        False,
    )
    assert [label["name"] for label in pull["labels"]] == ["sandpiper"]
    for words in ("The answer is 42.", f"Asked for by {place.writer}", "`sh check.sh`", f"Closes #{asked.number}"):
        assert words in pull["body"]
    assert f"@{place.writer}" not in pull["body"]
    assert place.show("answer", pull["head"]["ref"]) == "42"
    assert place.api(f"/commits/{pull['head']['sha']}")["author"]["login"] == "sandpiper[bot]"
    status = asked.status("✅ done", f"Pull request: #{pull['number']}")
    for words in ("- [x] do it", "| `sh check.sh` |", "+42", "The answer is 42."):
        assert words in status
    place.github.settle()
    assert place.reactions(asked.comment_id) == ["eyes"]
    assert len(place.said(asked.number)) == 1
    assert len(place.calls()) <= 15


def test_a_review_is_one_with_remarks_at_their_lines_and_the_next_one_remembers_it(stack: Stack, place: Place) -> None:
    number = place.pull(SLIPS)
    first = place.ask(number, f"/review {new_task(stack, *reviews(WRONG, ODD, BESIDE))}")
    assert first.end()["status"] == "completed"
    (review,) = place.api(f"/pulls/{number}/reviews")
    assert (review["state"], review["commit_id"]) == ("COMMENTED", place.api(f"/pulls/{number}")["head"]["sha"])
    assert "`check.sh:1`" in review["body"]
    remarks = place.api(f"/pulls/{number}/comments")
    assert {(one["path"], one["line"]) for one in remarks} == {("answer", 2), ("answer", 3)}
    assert "```suggestion\nb = 2\n```" in remarks[0]["body"]
    (check,) = place.api(f"/commits/{review['commit_id']}/check-runs")["check_runs"]
    assert (check["name"], check["conclusion"], check["external_id"]) == ("sandpiper/review", "neutral", first.run_id)
    first.status("✅ done", "3 remarks")

    place.github.commit(place.name, "topic", {"answer": "40\nb = 2\nc = 3\n"}, by=place.writer)
    second = place.ask(number, f"/review {new_task(stack, *reviews(ODD))}")
    assert second.end()["status"] == "completed"
    told = second.person.events(second.run_id)
    assert of_type(told, "warning") == []
    assert [one["repeated"] for one in of_type(told, "review_submitted")] == [1]
    assert len(place.api(f"/pulls/{number}/comments")) == 2
    assert resolved(stack, place.name, number) == {2: True, 3: False}


def test_fix_on_a_reviewed_pull_request_is_told_the_remarks_that_are_open_and_no_others(
    stack: Stack, place: Place
) -> None:
    number = place.pull(SLIPS)
    review = place.ask(number, f"/review {new_task(stack, *reviews(WRONG, ODD, BESIDE))}")
    review.end()
    review.status("Comment `/fix` here to have the remarks worked in.")
    place.api(f"/pulls/{number}/reviews", "POST", {"event": "COMMENT", "body": "Mind the gap."})
    first, _ = threads(stack, place.name, number)
    ask_graphql(stack, RESOLVE, by=place.writer, id=first["id"])
    task = new_task(stack, *REPAIR)
    assert place.ask(number, f"/fix {task}").end()["status"] == "completed"
    told = str(requests_for(stack, task)[0]["messages"])
    heard = {words: words in told for words in ("Must be 2.", "Why three?", "Checks little.", "Mind the gap.")}
    assert heard == {"Must be 2.": False, "Why three?": True, "Checks little.": True, "Mind the gap.": True}
    assert "+b = 20" in told


def resolved(stack: Stack, name: str, number: int) -> dict[int, bool]:
    """Whether the thread at a line is."""
    return {thread["originalLine"]: thread["isResolved"] for thread in threads(stack, name, number)}


def threads(stack: Stack, name: str, number: int) -> list[dict[str, Any]]:
    owner, _, repository = name.partition("/")
    query = """query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) {
      pullRequest(number: $number) { reviewThreads(first: 50) { nodes { id isResolved originalLine } } } } }"""
    found = ask_graphql(stack, query, by=owner, owner=owner, name=repository, number=number)
    return list(found["repository"]["pullRequest"]["reviewThreads"]["nodes"])


def ask_graphql(stack: Stack, query: str, *, by: str, **variables: Any) -> Any:
    assert stack.github is not None
    answer = stack.github.http.post(
        f"{stack.github.url}/api/graphql",
        json={"query": query, "variables": variables},
        headers={"Authorization": f"Bearer {stack.github.token(by)}"},
    )
    return answer.json()["data"]


def test_on_a_pull_request_work_goes_to_its_branch_and_tests_become_a_check(stack: Stack, place: Place) -> None:
    number = place.pull({"answer": "40\n"})
    before = place.api(f"/pulls/{number}")["head"]["sha"]
    tested = place.ask(number, f"/test {new_task(stack, plans(), finishes('Ran them.'))}")
    fixed = place.ask(number, f"/fix {new_task(stack, *REPAIR)}")
    assert (tested.end()["status"], fixed.end()["status"]) == ("completed", "completed")
    pull = place.api(f"/pulls/{number}")
    assert (len(place.api("/pulls?state=all")), pull["body"]) == (1, None)
    assert [commit["sha"] for commit in place.api(f"/pulls/{number}/commits")][-2:] == [before, pull["head"]["sha"]]
    assert place.show("answer", "topic") == "42"
    assert "pr_updated" in types_of(fixed.person.events(fixed.run_id))
    fixed.status("✅ done", f"Pull request: #{number}")
    (check,) = place.api(f"/commits/{before}/check-runs")["check_runs"]
    assert (check["name"], check["conclusion"]) == ("sandpiper/test", "success")
    tested.status("✅ done", "| `sh check.sh` |")


def test_a_pull_request_from_a_fork_is_read_and_not_written_to(stack: Stack, place: Place) -> None:
    stranger = f"{place.writer}-elsewhere"
    place.github.fake("PUT", f"/repos/{place.name}/permissions", {stranger: "read"})
    fork = place.github.fake("POST", f"/repos/{place.name}/forks", {"owner": stranger})["full_name"]
    place.github.commit(fork, "topic", SLIPS, by=stranger)
    number = place.github.open_pull(place.name, f"{stranger}:topic", by=stranger)
    refused = place.ask(number, f"/fix {new_task(stack, *REPAIR)}")
    reviewed = place.ask(number, f"/review {new_task(stack, *reviews(WRONG))}")
    assert reviewed.end()["status"] == "completed"
    assert [review["user"]["type"] for review in place.api(f"/pulls/{number}/reviews")] == ["Bot"]
    assert set(place.reactions(refused.comment_id, count=2)) == {"eyes", "confused"}
    assert any("comes from a fork" in one["body"] for one in place.said(number))
    assert refused.person.http.get(f"/runs/{refused.run_id}").status_code == 404


def test_who_may_not_write_gets_a_reaction_and_neither_words_nor_a_run(stack: Stack, place: Place) -> None:
    asked = place.ask(place.issue(), f"/implement {new_task(stack, *REPAIR)}", by="rob")
    assert place.reactions(asked.comment_id) == ["confused"]
    place.github.settle()
    assert place.said(asked.number) == []
    assert asked.person.http.get(f"/runs/{asked.run_id}").status_code == 404


def test_a_label_has_the_issue_itself_implemented(stack: Stack, place: Place) -> None:
    number = place.issue(
        "Answer", f"\U0001f468\u200d\U0001f469\u200d\U0001f467 {new_task(stack, *REPAIR)}" + "\u200bx" * 25_000
    )
    place.api(f"/issues/{number}/labels", "POST", {"labels": ["sandpiper"]})
    (pull,) = wait_for(lambda: place.api("/pulls") or None)
    assert f"Closes #{number}" in pull["body"]
    assert [reaction["content"] for reaction in place.api(f"/issues/{number}/reactions")] == ["eyes"]
