"""Whole runs that follow the repository's CI: suspended while it works, woken to repair; GitHub's API is a stub."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandpiper import limits
from sandpiper.logic import suspension
from sandpiper.models.github import GitHubOrigin
from sandpiper.models.spec import RunSpec
from sandpiper.testing.github import FakeHeadWatch
from tests.unit.sandbox.world import RUN_ID, World, done, plan, run, write

if TYPE_CHECKING:
    from sandpiper.models.run import RunResult
    from tests.unit.sandbox.git_server import GitServer
    from tests.unit.sandbox.github.stub import StubGitHub

FILES = {
    "answer": "41\n",
    "check.sh": "grep -q 4 answer\n",
    ".github/workflows/ci.yml": "on: push\n",
    ".sandpiper.yml": "checks: ['sh check.sh']\nfollow_ci: true\n",
}
BRANCH = "sandpiper/bug-fix-make-the-answer-right-000abc"
ORIGIN = GitHubOrigin(
    installation_id=1, repository="o/r", number=12, command="implement", sender="ann", origin="issue_comment"
)
FIRST = [plan(), write("answer", "42\n"), done("It is 42 now.")]


def spec(url: str, **more: Any) -> RunSpec:
    fields = {"task": "Make the answer right", "type": "bug-fix", "repo": "o/r", "repo_url": url, "github": ORIGIN}
    return RunSpec(**{**fields, **more})


def ci_says(github: StubGitHub, sha: str, conclusion: str, *, log: str = "") -> None:
    job = 40 + len(github.check_runs)
    github.check_runs.append(
        {
            "id": job,
            "name": f"build-{job}",
            "head_sha": sha,
            "status": "completed",
            "conclusion": conclusion,
            "app": {"slug": "github-actions"},
        }
    )
    github.logs[job] = log


def pushed(git_server: GitServer) -> str:
    return git_server.git("o/r", "rev-parse", BRANCH).strip()


def waiting(result: RunResult) -> tuple[str, str | None]:
    return result.outcome, result.suspend_reason


@pytest.fixture
def followed(hub_world: World, git_server: GitServer) -> World:
    """A run that has pushed, opened its pull request, and waits."""
    hub_world.perform(spec(git_server.create("o/r", FILES)), FIRST)
    assert waiting(hub_world.result) == ("suspended", "awaiting_ci")
    return hub_world


def test_after_its_push_the_run_waits_for_ci_without_a_sandbox(
    followed: World, git_server: GitServer, github: StubGitHub
) -> None:
    assert isinstance(followed.watch, FakeHeadWatch)
    assert followed.watch.watcher("o/r", pushed(git_server)) == RUN_ID
    assert len(github.pulls) == 1
    assert "+42" in followed.diff


def test_green_completes_the_run_with_everything_it_did(
    followed: World, git_server: GitServer, github: StubGitHub
) -> None:
    ci_says(github, pushed(git_server), "success")
    model = followed.go_on([])
    result = followed.result
    assert (result.outcome, result.ci, result.summary) == ("completed", "passed", "It is 42 now.")
    assert model.requests == []
    assert result.commit is not None
    assert result.commit.sha == pushed(git_server)
    assert result.pull_request is not None
    assert result.gate is not None
    assert result.usage.turns == 3
    assert "+42" in followed.diff


def test_red_is_repaired_with_the_jobs_log_and_pushed_on_top(
    followed: World, git_server: GitServer, github: StubGitHub
) -> None:
    first = pushed(git_server)
    ci_says(github, first, "failure", log="x" * 99_999 + "\nE  expected 43 </repository>\n")
    model = followed.go_on([run("cat answer"), write("answer", "43\n"), done("It is 43.")])
    assert waiting(followed.result) == ("suspended", "awaiting_ci")
    told = "".join(getattr(block, "text", "") for block in model.requests[0].messages[-1].blocks)
    assert "E  expected 43 &lt;/repository>" in told
    assert len(told) < 2 * limits.CI_LOG_BYTES
    assert "42\\n[exit code 0]" in str(model.requests[1].messages[-1])
    second = pushed(git_server)
    assert git_server.git("o/r", "rev-parse", f"{second}^").strip() == first
    assert git_server.git("o/r", "log", "-1", "--format=%s", second).strip() == "fix: Repair what CI found"
    assert followed.told("gate_repair_started")[0]["ci"] is True
    assert len(github.pulls) == 1
    ci_says(github, second, "success")
    followed.go_on([])
    assert (followed.result.outcome, followed.result.ci) == ("completed", "passed")
    assert "-41\n+43" in followed.diff


def test_a_run_that_was_woken_too_early_waits_on(followed: World, git_server: GitServer, github: StubGitHub) -> None:
    github.suites.append({"id": 1, "status": "in_progress", "latest_check_runs_count": 1})
    ci_says(github, pushed(git_server), "failure")
    followed.go_on([])
    assert waiting(followed.result) == ("suspended", "awaiting_ci")
    github.suites.clear()
    github.check_runs[0]["conclusion"] = "success"
    followed.go_on([])
    assert followed.result.ci == "passed"


def test_a_ci_that_stays_red_fails_the_run_when_its_repairs_are_used_up(
    followed: World, git_server: GitServer, github: StubGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CI_ROUNDS", 1)
    ci_says(github, pushed(git_server), "failure")
    followed.go_on([write("answer", "43\n"), done()])
    assert waiting(followed.result) == ("suspended", "awaiting_ci")
    ci_says(github, pushed(git_server), "failure")
    followed.go_on([])
    assert followed.result.error is not None
    assert followed.result.error.type == "gate_failed"
    assert "still red after 1 rounds of repair" in followed.result.error.message
    assert followed.result.ci == "failed"


def test_a_repair_that_changes_nothing_ends_the_run(followed: World, git_server: GitServer, github: StubGitHub) -> None:
    ci_says(github, pushed(git_server), "failure")
    followed.go_on([done("I see nothing.")])
    assert followed.result.error is not None
    assert "found nothing to change" in followed.result.error.message


def test_a_ci_that_was_faster_than_the_run_is_not_waited_for(
    hub_world: World, git_server: GitServer, github: StubGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hub_world.watch is not None
    note = hub_world.watch.watch

    def watched(repository: str, sha: str, run_id: str) -> None:
        ci_says(github, sha, "success")
        note(repository, sha, run_id)

    monkeypatch.setattr(hub_world.watch, "watch", watched)
    hub_world.perform(spec(git_server.create("o/r", FILES)), FIRST)
    assert (hub_world.result.outcome, hub_world.result.ci) == ("completed", "passed")


def test_a_ci_that_was_red_at_once_wakes_the_run_by_itself(
    hub_world: World, git_server: GitServer, github: StubGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_world.watch, "watch", lambda _repository, sha, _run_id: ci_says(github, sha, "failure"))
    hub_world.perform(spec(git_server.create("o/r", FILES)), FIRST)
    result = hub_world.result
    row = hub_world.runs.get(RUN_ID).model_copy(update={"suspend_reason": "awaiting_ci", "result": result})
    assert suspension.is_over(row, [])
    pending = row.model_copy(update={"result": result.model_copy(update={"ci": None})})
    assert not suspension.is_over(pending, [])


def test_without_any_ci_there_is_nothing_to_wait_for(hub_world: World, git_server: GitServer) -> None:
    files = {path: content for path, content in FILES.items() if not path.startswith(".github")}
    hub_world.perform(spec(git_server.create("o/r", files)), FIRST)
    assert (hub_world.result.outcome, hub_world.result.ci) == ("completed", "none")
    assert "There is no CI to follow" in hub_world.told("warning")[0]["message"]


def test_ci_is_followed_only_if_somebody_asked_for_it(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    files = {**FILES, ".sandpiper.yml": "checks: ['sh check.sh']\n"}
    hub_world.perform(spec(git_server.create("o/r", files)), FIRST)
    assert (hub_world.result.outcome, hub_world.result.ci) == ("completed", None)
    assert github.calls("GET", r"/repos/o/r/commits/.*") == []
