"""The status comment while a sandbox works: few edits, and never in the way of the run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.github.status import StatusComment
from sandpiper import limits
from sandpiper.adapters.github.client import GitHubClient
from sandpiper.adapters.github.pulls import Pulls
from sandpiper.models.github import GitHubOrigin
from sandpiper.models.spec import RunSpec
from tests.unit.sandbox.github.stub import Refusal, StubGitHub
from tests.unit.sandbox.world import RUN_ID, World, done, plan, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.unit.sandbox.git_server import GitServer

ORIGIN = GitHubOrigin(
    installation_id=1, repository="o/r", number=12, command="implement", sender="ann", origin="issue_comment"
)
PLAN = {"plan": {"summary": "Do it.", "steps": ["one"]}}
GATE = {"status": "passed", "summary": "1 check: 1 passed", "mode": "regression"}
EDIT = "/repos/o/r/issues/comments/55"


class Comment:
    """A comment that is edited without pauses, and what waits until an edit has arrived."""

    def __init__(self, world: World, github: StubGitHub) -> None:
        self.github = github
        self.notes: list[str] = []
        self.status = StatusComment(
            world.runs, RUN_ID, world.clock, connect=self._connect, link=None, note=self.notes.append
        )

    def edits(self) -> list[str]:
        return self.github.comments.get(55, [])

    def shown(self, type_: str, data: dict[str, Any]) -> list[str]:
        """Tell it something that is worth an edit; all edits once that one has arrived."""
        before = len(self.edits())
        self.status.observe(type_, data)
        _wait_until(lambda: len(self.edits()) > before)
        return self.edits()

    def _connect(self, sleep: Callable[[float], None]) -> Pulls:
        return Pulls(GitHubClient(self.github.url, lambda: "t", sleep=sleep), "o/r")


def _wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("it did not come about")


@pytest.fixture
def comment(world: World, github: StubGitHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Comment]:
    monkeypatch.setattr(limits, "STATUS_COMMENT_SECONDS", 0)
    monkeypatch.setattr(limits, "GITHUB_PAUSES_SECONDS", ())
    world.store(RunSpec(task="t", github=ORIGIN))
    world.runs.change(RUN_ID, allowed=("provisioning",), changes={"status_comment_id": 55, "status": "running"})
    comment = Comment(world, github)
    yield comment
    comment.status.close()


def test_milestones_are_shown_and_everything_else_costs_no_call(comment: Comment) -> None:
    comment.shown("planning_completed", PLAN)
    comment.status.observe("tool_started", {"tool": "run_command"})
    comment.status.observe("agent_turn_started", {})
    first, second = comment.shown("gate_completed", GATE)
    assert "- [ ] one" in first
    assert "**Quality gate**: ✅ passed" in second
    assert "- [ ] one" in second


def test_each_approval_that_is_asked_for_is_shown_at_once(comment: Comment) -> None:
    comment.shown("approval_requested", {"approval_id": "ap-1"})
    first, second = comment.shown("approval_requested", {"approval_id": "ap-2"})
    assert ("ap-1" in first, "ap-2" in second) == (True, True)


def test_what_changed_nothing_is_not_sent_again(comment: Comment) -> None:
    comment.shown("planning_completed", PLAN)
    comment.status.observe("planning_completed", PLAN)
    assert len(comment.shown("gate_completed", GATE)) == 2


def test_a_github_that_fails_is_left_alone_and_the_log_says_so(comment: Comment, github: StubGitHub) -> None:
    github.refusals.append(Refusal("PATCH", EDIT, 502, "Bad gateway"))
    comment.status.observe("planning_completed", PLAN)
    _wait_until(lambda: bool(comment.notes))
    comment.status.observe("gate_completed", GATE)
    comment.status.close()
    assert len(github.calls("PATCH", EDIT)) == 1
    assert "Bad gateway" in comment.notes[0]


def test_nothing_is_said_after_the_end(comment: Comment) -> None:
    comment.status.close()
    comment.status.observe("planning_completed", PLAN)
    assert comment.edits() == []


def test_a_whole_run_makes_few_calls_and_is_not_harmed_by_a_comment_that_is_gone(
    hub_world: World, git_server: GitServer, github: StubGitHub
) -> None:
    files = {"answer": "41\n", "check.sh": "grep -q 42 answer\n", ".sandpiper.yml": "checks: ['sh check.sh']\n"}
    url = git_server.create("o/r", files)
    hub_world.store(RunSpec(task="t", type="bug-fix", repo="o/r", repo_url=url, github=ORIGIN))
    hub_world.runs.change(RUN_ID, allowed=("provisioning",), changes={"status_comment_id": 55})
    github.refusals.append(Refusal("PATCH", EDIT, 404, "Not Found", times=9))
    hub_world.attempt_with([plan(), write("answer", "42\n"), done()])
    assert hub_world.result.outcome == "completed"
    assert len(github.calls("PATCH", EDIT)) == 1
    assert len(github.asked) <= 6
