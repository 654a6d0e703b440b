"""Whole runs that review or test a pull request: real supervisor, wall and git; GitHub's API is a stub."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.github.pull_diff import PullDiff
from sandbox_task.github.remarks import Remark
from sandbox_task.github.reviewing import Reviewing
from sandbox_task.intents import Intents
from sandbox_task.progress import Progress
from sandbox_task.workspace.repository import Repository
from sandpiper import limits
from sandpiper.adapters.github.client import GitHubClient
from sandpiper.adapters.github.reviews import Reviews
from sandpiper.errors import GitHubError, SandpiperError, Unavailable
from sandpiper.models.github import GitHubOrigin, PullRequest
from sandpiper.models.run import Finding, Intent
from sandpiper.models.spec import RunSpec
from sandpiper.testing.github import FakeRepositoryTokens
from tests.unit.sandbox.git_server import TOKEN, GitServer
from tests.unit.sandbox.github.stub import Refusal, StubGitHub
from tests.unit.sandbox.world import RUN_ID, World, done, plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox_task.github.review_text import ReviewMode
    from sandbox_task.isolation.launch import Rooms
    from tests.unit.sandbox.recording_sink import RecordingSink

BASE = {"app.py": "a = 1\nb = 2\nc = 3\n", "far.py": "x\n", ".sandpiper.yml": "checks: ['true && test -f app.py']\n"}
WRONG = {"file": "app.py", "line": 2, "severity": "major", "message": "Must be 2.", "suggestion": "b = 2"}
BESIDE = {"file": "far.py", "line": 1, "severity": "minor", "message": "Says nothing."}
REVIEWS = "/repos/o/r/pulls/7/reviews"


def review(*findings: dict[str, Any]) -> list[Any]:
    return [plan(), [("finish", {"status": "done", "summary": "Looked, @ann.", "findings": list(findings)})]]


def on_pull(git_server: GitServer, *, type_: str = "code-review", base: dict[str, str] = BASE) -> RunSpec:
    """A pull request from a fork: only GitHub's own ref has it, and its own options must not count."""
    url = git_server.create("o/r", base)
    head = git_server.push(
        "o/r", {"app.py": "a = 1\nb = 20\nc = 3\n", ".sandpiper.yml": "checks: ['false']\n"}, "topic"
    )
    git_server.git("o/r", "update-ref", "refs/pull/7/head", head)
    git_server.git("o/r", "update-ref", "-d", "refs/heads/topic")
    origin = GitHubOrigin(
        installation_id=1,
        repository="o/r",
        number=7,
        command="review",
        sender="ann",
        origin="issue_comment",
        pull=PullRequest(head_sha=head, head_ref="topic", base_ref="main", from_fork=True),
    )
    return RunSpec(task="Review it", type=type_, repo="o/r", repo_url=url, github=origin, commit=False, context="said")


def head_of(spec: RunSpec) -> str:
    assert spec.github is not None
    assert spec.github.pull is not None
    return spec.github.pull.head_sha


def test_findings_become_one_review_of_the_head_that_was_asked_about(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    spec = on_pull(git_server)
    model = hub_world.perform(spec, review(WRONG, BESIDE))
    assert hub_world.result.outcome == "completed"
    (sent,) = github.reviews
    assert (sent["commit_id"], sent["event"]) == (head_of(spec), "COMMENT")
    (comment,) = sent["comments"]
    assert (comment["path"], comment["line"], comment["side"]) == ("app.py", 2, "RIGHT")
    assert "```suggestion\nb = 2\n```" in comment["body"]
    assert "`far.py:1` 🟡 **Minor**: Says nothing." in sent["body"]
    assert "@ann" not in sent["body"]
    assert hub_world.told("review_submitted")[0]["comments"] == 1
    first = str(model.requests[0].messages[0])
    assert "+b = 20" in first
    assert first.index("<repository>") < first.index("+b = 20") < first.rindex("</repository>")
    (check,) = github.check_runs
    assert (check["name"], check["conclusion"], check["head_sha"]) == ("sandpiper/review", "neutral", head_of(spec))
    assert check["details_url"] == f"https://console.example/runs/{RUN_ID}"


def test_a_check_that_can_not_be_shown_is_a_warning(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    github.refusals.append(Refusal("POST", "/repos/o/r/check-runs", 403, "no", times=9))
    hub_world.perform(on_pull(git_server), review())
    assert hub_world.result.outcome == "completed"
    assert "sandpiper/review could not be shown" in hub_world.told("warning")[0]["message"]


def test_suites_are_reported_as_a_check_and_as_no_review(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    hub_world.perform(on_pull(git_server, type_="test-suite"), [plan(), done("Ran it.")])
    (check,) = github.check_runs
    assert (check["name"], check["conclusion"]) == ("sandpiper/test", "success")
    assert "test -f app.py" in check["output"]["summary"]
    assert github.reviews == []


def test_changes_are_requested_if_the_base_says_so_and_never_because_the_pull_request_does(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    base = {**BASE, ".sandpiper.yml": "review: request_changes\n"}
    hub_world.perform(on_pull(git_server, base=base), review(WRONG))
    assert github.reviews[0]["event"] == "REQUEST_CHANGES"
    assert github.check_runs[0]["conclusion"] == "failure"


def test_a_review_that_is_refused_fails_the_run_with_its_findings_kept(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    github.refusals.append(Refusal("POST", REVIEWS, 403, "Repository was archived so is read-only"))
    hub_world.perform(on_pull(git_server), review(WRONG))
    assert hub_world.result.error is not None
    assert "archived" in hub_world.result.error.message
    assert len(hub_world.result.findings) == 1


class Reviewer:
    """What of a run is needed for its review, without the run."""

    def __init__(self, hub_world: World, git_server: GitServer, github: StubGitHub, rooms: Rooms, sink: Any) -> None:
        spec = on_pull(git_server)
        assert spec.github is not None
        assert spec.github.pull is not None
        hub_world.store(spec)
        self.github, self.world, self.sink = github, hub_world, sink
        self.repository = Repository.clone(spec, rooms, token=TOKEN, at=spec.github.pull.head_sha)
        reviews = Reviews(GitHubClient(github.url, lambda: TOKEN), "o/r", 7)
        intents = Intents(hub_world.runs, RUN_ID, 1, hub_world.clock)
        self.pull, self.resolved = spec.github.pull, list[str]()
        self.findings: tuple[dict[str, Any], ...] = (WRONG,)
        self.refusal: SandpiperError | None = None
        diff = PullDiff(spec.github.pull)
        self.reviewing = Reviewing(reviews, diff, RUN_ID, "`run`", intents, sink, set, self.resolve)

    def resolve(self, threads: Sequence[str]) -> None:
        if self.refusal:
            raise self.refusal
        self.resolved += threads

    def submit(self, mode: ReviewMode = "comment") -> list[dict[str, Any]]:
        progress = Progress(findings=tuple(map(Finding.model_validate, self.findings)), summary="Looked.")
        self.reviewing.submit(self.repository, progress, mode)
        return self.github.reviews


@pytest.fixture
def reviewer(
    hub_world: World, git_server: GitServer, github: StubGitHub, rooms: Rooms, sink: RecordingSink
) -> Reviewer:
    return Reviewer(hub_world, git_server, github, rooms, sink)


def test_of_its_own_pull_request_no_changes_are_requested(reviewer: Reviewer, github: StubGitHub) -> None:
    github.refusals.append(Refusal("POST", REVIEWS, 422, "Can not request changes on your own pull request"))
    assert [(sent["event"], len(sent["comments"])) for sent in reviewer.submit("request_changes")] == [("COMMENT", 1)]


def test_remarks_whose_lines_github_refuses_are_not_lost(reviewer: Reviewer, github: StubGitHub) -> None:
    github.refusals.append(Refusal("POST", REVIEWS, 422, "Line must be part of the diff"))
    (sent,) = reviewer.submit()
    assert sent["comments"] == []
    assert "`app.py:2` 🟠 **Major**: Must be 2." in sent["body"]


def shown(path: str, patch: str | None) -> dict[str, Any]:
    """As GitHub lists a file; of one that is too large there is no patch."""
    return {"filename": path, **({"patch": patch} if patch else {})}


PATCH = "@@ -1,3 +1,3 @@\n a = 1\n-b = 2\n+b = 20\n c = 3"


def test_of_the_lines_that_github_does_not_show_only_those_move_to_the_text(
    reviewer: Reviewer, github: StubGitHub
) -> None:
    reviewer.findings = (WRONG, {**WRONG, "line": 3, "message": "Why three?"})
    github.files = [shown("big.py", None), shown("app.py", PATCH.rpartition("\n")[0].replace("3", "2"))]
    github.refusals.append(Refusal("POST", REVIEWS, 422, "Line must be part of the diff"))
    (sent,) = reviewer.submit()
    assert [comment["line"] for comment in sent["comments"]] == [2]
    assert "`app.py:3` 🟠 **Major**: Why three?" in sent["body"]


def test_a_request_for_changes_stays_one_when_only_a_line_was_refused(reviewer: Reviewer, github: StubGitHub) -> None:
    github.refusals.append(Refusal("POST", REVIEWS, 422, "Line must be part of the diff", times=2))
    (sent,) = reviewer.submit("request_changes")
    assert (sent["event"], sent["comments"]) == ("REQUEST_CHANGES", [])


def test_what_was_found_in_a_commit_that_was_thrown_away_is_said_of_the_pull_request(
    reviewer: Reviewer, github: StubGitHub
) -> None:
    github.refusals.append(Refusal("POST", REVIEWS, 422, "commit_id is not part of the pull request", times=2))
    (sent,) = reviewer.submit()
    assert "commit_id" not in sent
    assert "`app.py:2` 🟠 **Major**: Must be 2." in sent["body"]
    assert reviewer.pull.head_sha[:12] in sent["body"]


def test_a_review_remembers_what_is_open_and_resolves_what_was_fixed(reviewer: Reviewer, github: StubGitHub) -> None:
    github.thread(Remark(Finding.model_validate(WRONG), "b = 20").body, "app.py", 2)
    fixed = Finding(file="app.py", line=3, severity="minor", message="An older problem.")
    github.thread(Remark(fixed, "old").body, "app.py", 3, isOutdated=True)
    told = reviewer.reviewing.told_first(reviewer.repository)
    assert "- app.py:2: 🟠 **Major**: Must be 2." in told
    assert "- app.py:3 (its lines have changed since): 🟡 **Minor**: An older problem." in told
    (sent,) = reviewer.submit()
    assert sent["comments"] == []
    assert "still open: 1 earlier remark." in sent["body"]
    assert reviewer.resolved == [github.threads[1]["id"]]


@pytest.mark.parametrize("refusal", [GitHubError("not accessible", code=403), Unavailable("Try again.")])
def test_a_remark_that_can_not_be_resolved_is_a_warning(
    reviewer: Reviewer, github: StubGitHub, refusal: SandpiperError
) -> None:
    fixed = Finding(file="app.py", line=3, severity="minor", message="An older problem.")
    github.thread(Remark(fixed, "old").body, "app.py", 3, isOutdated=True)
    reviewer.refusal = refusal
    assert len(reviewer.submit()) == 1
    assert "could not be resolved" in reviewer.sink.of("warning")[0]["message"]


def test_a_review_has_what_was_fixed_resolved_in_the_name_of_its_attempt(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    fixed = Finding(file="app.py", line=3, severity="minor", message="An older problem.")
    github.thread(Remark(fixed, "old").body, "app.py", 3, isOutdated=True)
    hub_world.perform(on_pull(git_server), review())
    assert isinstance(hub_world.tokens, FakeRepositoryTokens)
    assert hub_world.tokens.resolved == [github.threads[0]["id"]]


def test_a_review_that_an_earlier_attempt_submitted_is_found_and_not_submitted_again(
    reviewer: Reviewer, github: StubGitHub
) -> None:
    github.reviews.append({"id": 1, "html_url": "u", "body": f"x <!-- sandpiper:review {RUN_ID} -->"})
    intents = {"review": Intent(at=reviewer.world.clock.now())}
    reviewer.world.runs.change(RUN_ID, allowed=("provisioning",), changes={"intents": intents})
    assert len(reviewer.submit()) == 1
    assert github.calls("POST", REVIEWS) == []
    assert reviewer.sink.of("review_submitted")[0]["id"] == 1


def test_earlier_remarks_that_can_not_be_read_are_no_reason_for_no_review(
    reviewer: Reviewer, github: StubGitHub
) -> None:
    github.refusals.append(Refusal("POST", "/graphql", 403, "no"))
    assert len(reviewer.submit()) == 1
    assert "Earlier remarks could not be read" in reviewer.sink.of("warning")[0]["message"]


def test_a_diff_that_is_too_large_is_named_and_its_remarks_stand_in_the_text(
    reviewer: Reviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REVIEW_DIFF_BYTES", 10)
    assert "too large to be shown" in reviewer.reviewing.told_first(reviewer.repository)
    assert reviewer.submit()[0]["comments"] == []


def test_of_a_diff_that_is_too_large_github_says_what_it_shows(
    reviewer: Reviewer, github: StubGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REVIEW_DIFF_BYTES", 10)
    github.files = [shown("app.py", PATCH)]
    assert [comment["line"] for comment in reviewer.submit()[0]["comments"]] == [2]
