"""Whole runs that end in a pull request: real supervisor, wall and git; GitHub's API is a stub."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper import limits
from sandpiper.models.github import GitHubOrigin, PullRequest
from sandpiper.models.run import Intent
from sandpiper.models.spec import RunSpec
from sandpiper.testing.github import FakeRepositoryTokens
from tests.unit.sandbox.git_server import TOKEN, GitServer
from tests.unit.sandbox.github.stub import Refusal, StubGitHub
from tests.unit.sandbox.world import RUN_ID, World, done, plan, write

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = {"answer": "41\n", "other": "x\n", "check.sh": "grep -q 42 answer\n"}
CHECKED = {**FILES, ".sandpiper.yml": "checks: ['sh check.sh']\n"}
TURNS = [plan(), write("answer", "42\n"), done("It is 42 now, fixes #99, ask @ann.")]
BRANCH = "sandpiper/bug-fix-make-the-answer-right-000abc"


def origin(pull: PullRequest | None = None, **more: Any) -> GitHubOrigin:
    return GitHubOrigin(
        **{
            "installation_id": 1,
            "repository": "o/r",
            "number": 12 if pull is None else 7,
            "command": "implement",
            "sender": "ann",
            "origin": "issue_comment",
            "pull": pull,
            **more,
        }
    )


def spec(url: str | None, **more: Any) -> RunSpec:
    fields = {"task": "Make the answer right", "type": "bug-fix", "repo": "o/r", "repo_url": url, "create_pr": True}
    return RunSpec(**{**fields, **more})


def test_a_run_that_was_asked_for_one_opens_a_pull_request(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    hub_world.perform(spec(git_server.create("o/r", CHECKED)), TURNS)
    assert hub_world.result.outcome == "completed"
    (pull,) = github.pulls
    assert (pull["title"], pull["head"]["ref"], pull["base"], pull["draft"]) == (
        "fix: Make the answer right", BRANCH, "main", False,
    )  # fmt: skip
    assert "| `sh check.sh` | ✅ passed |" in pull["body"]
    assert f"https://console.example/runs/{RUN_ID}" in pull["body"]
    assert "@ann" not in pull["body"]
    assert "#99" not in pull["body"]
    assert hub_world.result.pull_request is not None
    assert hub_world.result.pull_request.number == pull["number"]
    assert [data["number"] for data in hub_world.told("pr_opened")] == [pull["number"]]
    assert github.calls("POST", r"/repos/o/r/issues/\d+/labels")[0].body == {"labels": ["sandpiper"]}
    assert {asked.token for asked in github.asked} == {TOKEN}


def test_an_issue_is_closed_by_the_pull_request_of_its_comment(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    hub_world.perform(spec(git_server.create("o/r", CHECKED), create_pr=False, github=origin()), TURNS)
    assert "\nCloses #12\n" in github.pulls[0]["body"]
    assert "Asked for by ann in #12" in github.pulls[0]["body"]


def test_a_run_without_a_token_of_its_own_works_with_one_that_is_minted_and_tells_it_nobody(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    hub_world.tokens = FakeRepositoryTokens(hub_world.clock, tokens=itertools.repeat(TOKEN))
    hub_world.perform(spec(git_server.create("o/r", CHECKED), github=origin()), TURNS, token=None)
    assert hub_world.result.outcome == "completed"
    assert {asked.token for asked in github.asked} == {TOKEN}
    assert TOKEN not in hub_world.everything_that_left()


def test_what_the_gate_did_not_prove_is_a_draft_that_says_so(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    hub_world.perform(spec(git_server.create("o/r", FILES)), TURNS)
    assert github.pulls[0]["draft"] is True
    assert github.pulls[0]["body"].startswith("> ⚠️ **Unverified**")
    assert hub_world.result.pull_request is not None
    assert hub_world.result.pull_request.draft


def test_where_there_are_no_drafts_it_is_an_ordinary_one(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    github.refusals.append(Refusal("POST", "/repos/o/r/pulls", 422, "Draft pull requests are not supported"))
    hub_world.perform(spec(git_server.create("o/r", FILES)), TURNS)
    assert [pull["draft"] for pull in github.pulls] == [False]


@pytest.mark.parametrize(("files", "is_draft"), [(FILES, True), (CHECKED, False)])
def test_a_branch_that_github_does_not_see_at_once_gets_its_pull_request_a_moment_later(
    hub_world: World,
    git_server: GitServer,
    github: StubGitHub,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    *,
    is_draft: bool,
) -> None:
    monkeypatch.setattr(limits, "GITHUB_PAUSES_SECONDS", (0.0, 0.0, 0.0))
    github.refusals.append(Refusal("POST", "/repos/o/r/pulls", 422, "Validation Failed: head invalid", times=2))
    hub_world.perform(spec(git_server.create("o/r", files)), TURNS)
    assert [pull["draft"] for pull in github.pulls] == [is_draft]


@pytest.mark.parametrize(("body", "is_rewritten"), [("<!-- sandpiper:pull run-old -->", True), ("By hand.", False)])
def test_a_branch_that_has_a_pull_request_keeps_it_and_a_persons_words(
    hub_world: World, git_server: GitServer, github: StubGitHub, body: str, *, is_rewritten: bool
) -> None:
    github.pull(5, head={"ref": "topic"}, body=body)
    hub_world.perform(spec(git_server.create("o/r", CHECKED), branch="topic"), TURNS)
    assert [pull["number"] for pull in github.pulls] == [5]
    assert (github.pulls[0]["body"] != body) is is_rewritten
    assert hub_world.told("pr_updated")[0]["number"] == 5
    assert hub_world.told("pr_opened") == []


def test_a_pull_request_that_an_earlier_attempt_opened_is_found_and_not_opened_again(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    github.pull(5, head={"ref": BRANCH})
    hub_world.store(spec(git_server.create("o/r", CHECKED)))
    intents = {"pull_request": Intent(at=hub_world.clock.now())}
    hub_world.runs.change(RUN_ID, allowed=("provisioning",), changes={"intents": intents})
    hub_world.attempt_with(TURNS)
    assert github.calls("POST", "/repos/o/r/pulls") == []
    assert hub_world.result.pull_request is not None
    assert hub_world.result.pull_request.number == 5


def test_an_attempt_after_everything_was_published_makes_and_tells_nothing_twice(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    hub_world.perform(spec(git_server.create("o/r", CHECKED)), TURNS)
    first = hub_world.result
    model = hub_world.go_on([])
    assert model.requests == []
    assert (hub_world.result.commit, hub_world.result.pull_request) == (first.commit, first.pull_request)
    assert len(github.calls("POST", "/repos/o/r/pulls")) == 1
    assert [hub_world.types.count(name) for name in ("commit_pushed", "pr_opened")] == [1, 1]


def test_an_attempt_after_a_push_onto_a_moved_branch_finds_its_commit_there(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    github.pull(7)

    def others_push() -> Any:
        git_server.push("o/r", {"other": "theirs\n"}, branch="topic")
        return done()

    hub_world.perform(on_pull(git_server), [plan(), write("answer", "42\n"), others_push])
    head = git_server.git("o/r", "rev-parse", "topic")
    run = hub_world.runs.get(RUN_ID)
    unsure = {"push": Intent(at=hub_world.clock.now())}
    hub_world.runs.change(RUN_ID, allowed=("running",), changes={"intents": run.intents | unsure})
    hub_world.go_on([])
    assert git_server.git("o/r", "rev-parse", "topic") == head
    assert hub_world.result.commit is not None
    assert hub_world.result.commit.sha == head.strip()
    assert "theirs" not in hub_world.diff


def test_who_works_on_a_pull_request_is_told_what_it_changes_as_data(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    github.pull(7)
    model = hub_world.perform(on_pull(git_server), TURNS)
    told = str(model.requests[0].messages[0])
    assert told.index("<repository>") < told.index("+of the pull request") < told.rindex("</repository>")


def test_a_server_that_fails_for_a_moment_gets_one_pull_request(
    hub_world: World, git_server: GitServer, github: StubGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "GITHUB_PAUSES_SECONDS", (0.0, 0.0))
    github.refusals.append(Refusal("POST", "/repos/o/r/pulls", 502, "Bad gateway"))
    hub_world.perform(spec(git_server.create("o/r", CHECKED)), TURNS)
    assert len(github.pulls) == 1
    assert hub_world.result.outcome == "completed"


def test_a_refused_pull_request_fails_the_run_in_words_and_the_branch_is_there(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    github.refusals.append(Refusal("POST", "/repos/o/r/pulls", 403, "Resource not accessible by integration"))
    hub_world.perform(spec(git_server.create("o/r", CHECKED)), TURNS)
    assert hub_world.result.error is not None
    assert "Resource not accessible by integration" in hub_world.result.error.message
    assert hub_world.result.commit is not None
    assert hub_world.result.commit.pushed
    assert BRANCH in git_server.branches("o/r")


def test_a_repository_elsewhere_gets_a_branch_and_a_warning(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    hub_world.settings["github_url"] = "https://github.com"
    hub_world.perform(spec(git_server.create("o/r", CHECKED)), TURNS)
    assert hub_world.result.outcome == "completed"
    assert "not on the GitHub that this deployment knows" in hub_world.told("warning")[0]["message"]
    assert github.asked == []


def on_pull(git_server: GitServer, **more: Any) -> RunSpec:
    url = git_server.create("o/r", CHECKED)
    head = git_server.push("o/r", {"new": "of the pull request\n"}, branch="topic")
    pull = PullRequest(head_sha=head, head_ref="topic", base_ref="main", **more)
    return spec(url, create_pr=False, github=origin(pull))


def test_on_a_pull_request_the_work_goes_on_top_of_its_branch(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    github.pull(7)
    hub_world.perform(on_pull(git_server), TURNS)
    assert git_server.git("o/r", "show", "topic:answer") == "42\n"
    assert git_server.git("o/r", "show", "topic:new") == "of the pull request\n"
    assert hub_world.told("pr_updated")[0]["number"] == 7
    assert hub_world.result.pull_request is not None
    assert hub_world.result.pull_request.number == 7
    assert github.calls("POST", "/repos/o/r/pulls") == []


def test_a_branch_that_moved_on_gets_the_work_on_top_marked_as_unverified(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    github.pull(7)

    def others_push() -> Any:
        git_server.push("o/r", {"other": "theirs\n"}, branch="topic")
        return done()

    hub_world.perform(on_pull(git_server), [plan(), write("answer", "42\n"), others_push])
    result = hub_world.result
    assert (result.outcome, result.error) == ("completed", None)
    assert git_server.git("o/r", "show", "topic:answer") == "42\n"
    assert git_server.git("o/r", "show", "topic:other") == "theirs\n"
    assert result.commit is not None
    assert result.commit.sha == git_server.git("o/r", "rev-parse", "topic").strip()
    assert not result.commit.verified
    assert "Sandpiper-Gate: passed (unverified)" in git_server.git("o/r", "log", "-1", "--format=%B", "topic")
    assert "had moved" in hub_world.told("warning")[0]["message"]
    assert "theirs" not in hub_world.diff
    assert "+42" in hub_world.diff


def conflict(git_server: GitServer, _github: StubGitHub) -> None:
    git_server.push("o/r", {"answer": "43\n"}, branch="topic")


def force_push(git_server: GitServer, _github: StubGitHub) -> None:
    git_server.git("o/r", "update-ref", "refs/heads/topic", "main")


def delete(git_server: GitServer, _github: StubGitHub) -> None:
    git_server.git("o/r", "update-ref", "-d", "refs/heads/topic")


def close(_git_server: GitServer, github: StubGitHub) -> None:
    github.pulls[0]["state"] = "closed"


def merge(_git_server: GitServer, github: StubGitHub) -> None:
    github.pulls[0].update(state="closed", merged=True)


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (conflict, "conflicts with what came"),
        (force_push, "was force-pushed while the run was working"),
        (delete, "was deleted while the run was working"),
        (close, "#7 was closed while the run was working"),
        (merge, "#7 was merged while the run was working"),
    ],
)
def test_what_happens_to_a_pull_request_meanwhile_is_said_and_the_work_is_kept(
    hub_world: World,
    git_server: GitServer,
    github: StubGitHub,
    happens: Callable[[GitServer, StubGitHub], None],
    words: str,
) -> None:
    github.pull(7)
    task = on_pull(git_server)
    before = {}

    def meanwhile() -> Any:
        happens(git_server, github)
        before["branches"] = git_server.git("o/r", "for-each-ref")
        return done()

    hub_world.perform(task, [plan(), write("answer", "42\n"), meanwhile])
    assert hub_world.result.error is not None
    assert hub_world.result.error.type == "repository_error"
    assert words in hub_world.result.error.message
    assert git_server.git("o/r", "for-each-ref") == before["branches"]
    assert "+42" in hub_world.diff


def test_a_pull_request_from_a_fork_is_worked_on_and_never_pushed_to(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    github.pull(7)
    task = on_pull(git_server, from_fork=True)
    assert task.github is not None
    assert task.github.pull is not None
    git_server.git("o/r", "update-ref", "refs/pull/7/head", task.github.pull.head_sha)
    git_server.git("o/r", "update-ref", "-d", "refs/heads/topic")
    hub_world.perform(task, TURNS)
    assert hub_world.result.outcome == "completed"
    assert "comes from a fork" in hub_world.told("commit_skipped")[0]["reason"]
    assert git_server.branches("o/r") == ["main"]
    assert hub_world.told("repo_clone_completed")[0]["commit"] == task.github.pull.head_sha
