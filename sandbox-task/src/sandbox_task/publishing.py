"""From a tree that the gate has let through to a branch: the story's record, the commit, the push."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox_task import delivery
from sandbox_task.stories import recording
from sandbox_task.workspace import landing
from sandpiper.models.run import CommitInfo

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from sandbox_task.agent.ports import Sink
    from sandbox_task.isolation.wall import Wall
    from sandbox_task.progress import Progress
    from sandbox_task.stopping import Stop
    from sandbox_task.workspace.repository import Repository
    from sandpiper.models.run import GateReport, StoryOutcome
    from sandpiper.models.spec import RunSpec

_MOVED = "The branch {branch} had moved, so the work was put on top of it. Nothing was checked there: it is unverified."
_REPAIR = {"type": "bug-fix", "task": "Repair what CI found", "commit_message": None}


@dataclass(frozen=True)
class Publisher:
    run_id: str
    spec: RunSpec
    github_url: str
    author: tuple[str, str]
    wall: Wall
    sink: Sink
    stop: Stop
    confirm_current: Callable[[], None]
    now: Callable[[], datetime]

    def publish(self, repository: Repository, progress: Progress, gate: GateReport, words: str) -> None:
        """`words` are the task's and the plan's, by which a story is found. Raises RunError, Stopped, Fenced."""
        progress.tree = repository.own_work(str(progress.tree))
        if reason := self._why_no_commit(repository, progress):
            self.sink.emit("commit_skipped", reason=reason)
            return
        if repository.tip is None:  # a repair of what CI found is no new work on a story
            progress.tree, progress.story = self.story_of(repository, str(progress.tree), gate, words)
        self._commit(repository, progress, gate)
        self._push(repository, progress)

    def _why_no_commit(self, repository: Repository, progress: Progress) -> str | None:
        before = repository.tree_of(repository.tip) if repository.tip else repository.base_tree
        if progress.tree == before:
            return "Nothing was changed."
        if not self.spec.commit:
            return "The run was asked not to commit."
        if not self.spec.repo_url:
            return "There is no repository to push to; the work is in the diff."
        if self.spec.github and self.spec.github.pull and self.spec.github.pull.from_fork:
            return "The pull request comes from a fork, which is not pushed to; the work is in the diff."
        return None

    def story_of(
        self, repository: Repository, tree: str, gate: GateReport, words: str
    ) -> tuple[str, StoryOutcome | None]:
        """The tree with the story's record in it, and how the story fared."""
        return recording.record(repository, tree, words, gate, task=self.spec.task, now=self.now(), sink=self.sink)

    def _commit(self, repository: Repository, progress: Progress, gate: GateReport) -> None:
        asked = self.spec if repository.tip is None else self.spec.model_copy(update=_REPAIR)
        message = delivery.commit_message(asked, self.run_id, progress.summary, gate)
        branch = delivery.branch_name(self.spec, self.run_id)
        sha = repository.commit(str(progress.tree), message, author=self.author)
        progress.commit = CommitInfo(sha=sha, branch=branch, message=message, verified=gate.status == "passed")
        told = progress.commit.model_dump(include={"sha", "branch", "message", "verified"})
        self.sink.emit("commit_created", **told)
        if not repository.start.continues_branch and repository.tip is None:
            self.sink.emit("git_branch_created", branch=branch, base=repository.start.name)

    def _push(self, repository: Repository, progress: Progress) -> None:
        """Only when nothing of B lives any more, and only if this attempt is still the one."""
        commit = progress.commit
        if commit is None:
            raise AssertionError("there is nothing to push")
        self.wall.close()
        self.stop.check()
        self.confirm_current()
        if (landed := landing.land(repository, commit, author=self.author)).sha != commit.sha:
            self.sink.emit("warning", message=_MOVED.format(branch=commit.branch), sha=landed.sha)
            commit, progress.tree = landed, repository.tree_of(landed.sha)
        repository.tip = commit.sha
        url = delivery.commit_url(self.spec, commit.sha, self.github_url)
        progress.commit = commit.model_copy(update={"pushed": True, "url": url})
        self.sink.emit("commit_pushed", sha=commit.sha, branch=commit.branch, url=url)
