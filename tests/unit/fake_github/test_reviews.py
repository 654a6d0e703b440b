"""Reviews, remarks and their threads on the fake GitHub."""

from __future__ import annotations

from typing import Any

import pytest

from sandpiper_local.fake_github.diff_lines import diff_lines, find_line
from sandpiper_local.fake_github.graphql.query import Execution, parse
from tests.unit.fake_github.conftest import REPO, World, changed, remark

THREADS = """query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviewThreads(first: 1, after: $after) {
      pageInfo { hasNextPage endCursor }
      nodes { id isResolved isOutdated path line comments(first: 10) {
        nodes { databaseId body author { login } viewerDidAuthor } } }
  } } } }"""
RESOLVE = """mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { id isResolved } } }"""


def test_a_review_is_one_verdict_with_its_remarks(world: World, pull: int) -> None:
    comments = [
        {"path": "till.py", "line": 10, "body": "Why?"},
        {"path": "till.py", "line": 9, "start_line": 8, "body": "Hm"},
    ]
    body = {"event": "REQUEST_CHANGES", "body": "Two things", "comments": comments}
    review = world.github.call("POST", f"/repos/{REPO}/pulls/{pull}/reviews", body, by="rob")
    path = f"/pulls/{pull}/reviews/{review['id']}"
    assert (review["state"], len(world.as_ann("GET", f"{path}/comments"))) == ("CHANGES_REQUESTED", 2)
    assert world.as_ann("GET", path) == review
    assert world.as_ann("PUT", f"{path}/dismissals", {"message": "done"})["state"] == "DISMISSED"
    assert len(world.as_ann("GET", f"/pulls/{pull}/reviews")) == 1
    assert world.events()[-3:] == [*["pull_request_review_comment.created"] * 2, "pull_request_review.submitted"]


@pytest.mark.parametrize(
    "comment",
    [
        {"path": "till.py", "line": 1, "body": "not shown"},
        {"path": "till.py", "line": 10, "side": "LEFT", "start_line": 10, "body": "starts at its end"},
        {"path": "README.md", "line": 1, "body": "not changed"},
        {"path": "nowhere.py", "line": 1, "body": "not there"},
    ],
    ids=lambda comment: comment["body"],
)
def test_a_remark_beside_the_diff_refuses_the_whole_review(world: World, pull: int, comment: dict[str, Any]) -> None:
    good = {"path": "till.py", "line": 10, "body": "fine"}
    body = {"event": "COMMENT", "body": "hm", "comments": [good, comment]}
    answer = world.api("POST", f"/repos/{REPO}/pulls/{pull}/reviews", body, token=world.github.token("rob"))
    assert answer.status_code == 422
    assert world.as_ann("GET", f"/pulls/{pull}/reviews") == []
    assert world.as_ann("GET", f"/pulls/{pull}/comments") == []


def test_nobody_requests_changes_of_themselves(world: World, pull: int) -> None:
    body = {"event": "REQUEST_CHANGES", "body": "hm"}
    answer = world.api("POST", f"/repos/{REPO}/pulls/{pull}/reviews", body, token=world.github.token("ann"))
    assert answer.json()["errors"] == ["Can not request changes on your own pull request"]


def test_a_remark_is_answered_changed_and_taken_back(world: World, pull: int) -> None:
    first = remark(world, pull, 10)
    reply = world.as_ann("POST", f"/pulls/{pull}/comments/{first['id']}/replies", {"body": "Yes"})
    assert reply["in_reply_to_id"] == first["id"]
    path = f"/pulls/comments/{reply['id']}"
    assert world.as_ann("PATCH", path, {"body": "Yes!"})["body"] == "Yes!"
    assert world.as_ann("GET", path)["body"] == "Yes!"
    world.as_ann("DELETE", path)
    assert [one["id"] for one in world.as_ann("GET", f"/pulls/{pull}/comments")] == [first["id"]]


def threads(world: World, pull: int, token: str) -> list[dict[str, Any]]:
    found, after = [], None
    while True:
        variables = {"owner": "acme", "name": "till", "number": pull, "after": after}
        answer = world.api("POST", "/graphql", {"query": THREADS, "variables": variables}, token=token).json()
        page = answer["data"]["repository"]["pullRequest"]["reviewThreads"]
        found += page["nodes"]
        if not page["pageInfo"]["hasNextPage"]:
            return found
        after = page["pageInfo"]["endCursor"]


def whose(found: list[dict[str, Any]]) -> list[bool]:
    """Whether the asker has written the last thread."""
    return [one["viewerDidAuthor"] for one in found[-1]["comments"]["nodes"]]


def test_threads_are_listed_and_resolved(world: World, pull: int) -> None:
    token = world.installation_token()
    first = remark(world, pull, 10)
    world.as_ann("POST", f"/pulls/{pull}/comments/{first['id']}/replies", {"body": "Yes"})
    remark(world, pull, 11)
    before = threads(world, pull, token)
    assert [[one["body"] for one in thread["comments"]["nodes"]] for thread in before] == [
        ["Is this right?", "Yes"],
        ["Is this right?"],
    ]
    assert before[0]["comments"]["nodes"][0]["databaseId"] == first["id"]
    assert [whose(threads(world, pull, one)) for one in (token, world.github.token("ann"))] == [[False], [True]]
    done = world.api("POST", "/graphql", {"query": RESOLVE, "variables": {"id": before[0]["id"]}}, token=token)
    assert done.json()["data"]["resolveReviewThread"]["thread"] == {"id": before[0]["id"], "isResolved": True}
    assert [thread["isResolved"] for thread in threads(world, pull, token)] == [True, False]


def test_a_remark_on_a_file_that_has_changed_is_outdated(world: World, pull: int) -> None:
    remark(world, pull, 10)
    world.github.commit(REPO, "topic", changed(11), by="ann")
    [thread] = threads(world, pull, world.github.token("ann"))
    assert (thread["isOutdated"], thread["line"]) == (True, None)


@pytest.mark.parametrize("query", ["query { nothing }", "query {", "{ viewer { shoeSize } }", "%"])
def test_a_question_that_graphql_does_not_know_is_told_so(world: World, query: str) -> None:
    answer = world.api("POST", "/graphql", {"query": query}, token=world.github.token("ann"))
    assert answer.json()["data"] is None
    assert answer.json()["errors"][0]["message"]


@pytest.mark.parametrize(
    "permissions", [{"pull_requests": "read", "contents": "write"}, {"pull_requests": "write", "contents": "read"}]
)
def test_a_token_without_the_permissions_resolves_nothing(world: World, pull: int, permissions: dict[str, str]) -> None:
    remark(world, pull, 10)
    token = world.installation_token(permissions=permissions)
    [thread] = threads(world, pull, token)
    body = {"query": RESOLVE, "variables": {"id": thread["id"]}}
    assert world.api("POST", "/graphql", body, token=token).json()["errors"][0]["type"] == "FORBIDDEN"


# ---- the rules without a server


def test_a_query_with_fragments_aliases_and_nested_input_is_understood() -> None:
    document = parse("""
      # what we ask
      query Threads($n: Int = 3) {
        again: thing(input: {list: [1, "a"], n: $n, on: true}) { ...Short ... on Thing { id } }
      }
      fragment Short on Thing { name }
    """)
    given: list[Any] = []

    def thing(**arguments: Any) -> dict[str, Any]:
        given.append(arguments)
        return {"__typename": "Thing", "id": 7, "name": "it", "secret": "no"}

    root = {"__typename": "Query", "thing": thing}
    picked = Execution(document.fragments, {"n": 5}).pick(root, document.selection)
    assert picked == {"again": {"name": "it", "id": 7}}
    assert given == [{"input": {"list": [1, "a"], "n": 5, "on": True}}]


def test_a_diff_shows_each_line_on_its_side() -> None:
    patch = "diff --git a/x b/x\n@@ -1,3 +1,3 @@\n same\n-old\n+new\n same\n@@ -9 +9,2 @@\n end\n+more\n"
    assert [(line.position, line.left, line.right) for line in diff_lines(patch)] == [
        (1, 1, 1), (2, 2, None), (3, None, 2), (4, 3, 3), (6, 9, 9), (7, None, 10),
    ]  # fmt: skip
    found = find_line(patch, 2, "LEFT")
    assert found is not None
    assert found.hunk == "@@ -1,3 +1,3 @@\n same\n-old"
    assert find_line(patch, 5, "RIGHT") is None
