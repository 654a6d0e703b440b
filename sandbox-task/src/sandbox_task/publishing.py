"""From a tree that the gate has let through to a branch: the story's record, the commit, the push."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandbox_task import delivery
from sandbox_task.stories import recording
from sandbox_task.workspace import landing
from sandpiper import limits
from sandpiper.models.run import CommitInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sandbox_task.agent.ports import Sink, Teller
    from sandbox_task.checkpoint import Proof
    from sandbox_task.intents import Intents
    from sandbox_task.isolation.wall import Wall
    from sandbox_task.progress import Progress
    from sandbox_task.stopping import Stop
    from sandbox_task.workspace.repository import Repository
    from sandpiper.models.events import EventType
    from sandpiper.models.run import StoryOutcome
    from sandpiper.models.spec import RunSpec
    from sandpiper.ports import Runs

_MOVED = "The branch {branch} had moved, so the work was put on top of it. Nothing was checked there: it is unverified."
_PUSHED = {"sha", "branch", "message", "verified"}
_REPAIR = {"type": "bug-fix", "task": "Repair what CI found", "commit_message": None}


def told_before(runs: Runs, run_id: str, attempt: int) -> set[str]:
    """The types of the events of earlier attempts: what is done once is told once."""
    types: set[str] = set()
    after = 0
    while attempt > 1 and (events := runs.events(run_id, after=after, limit=limits.MAX_PAGE)):
        types |= {event.type for event in events}
        after = events[-1].seq
    return types


@dataclass(frozen=True)
class Untold:
    """Tells what no earlier attempt has told."""

    sink: Teller
    told: Collection[str]

    def emit(self, type_: EventType, **data: Any) -> None:
        if type_ not in self.told:
            self.sink.emit(type_, **data)


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
    intents: Intents
    told_before: Callable[[], Collection[str]]  # the types of the events that earlier attempts have told

    def publish(self, repository: Repository, progress: Progress, proof: Proof, words: str) -> None:
        """The same work and proof give the same commit, which is pushed once, whoever does it.

        `words` are the task's and the plan's, by which a story is found. Raises RunError, Stopped, Fenced.
        """
        progress.tree = repository.own_work(str(progress.tree))
        if reason := self._why_no_commit(repository, progress):
            self.sink.emit("commit_skipped", reason=reason)
            return
        sink: Teller = self.sink
        if repository.tip is None:  # else it is a repair of what CI found: no new work on a story, and news
            sink = Untold(self.sink, self.told_before())
            progress.tree, progress.story = self.story_of(repository, str(progress.tree), proof, words, sink)
        progress.commit = commit = self._commit(repository, progress, proof)
        self._tell_commit(repository, commit, sink)
        progress.commit = pushed = self._push(repository, commit)
        progress.tree, repository.tip = repository.tree_of(pushed.sha), pushed.sha
        sink.emit("commit_pushed", **pushed.model_dump(include={"sha", "branch", "url"}))

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
        self, repository: Repository, tree: str, proof: Proof, words: str, sink: Teller
    ) -> tuple[str, StoryOutcome | None]:
        """The tree with the story's record in it, and how the story fared."""
        task = self.spec.task
        return recording.record(repository, tree, words, proof.gate, task=task, now=proof.at, sink=sink)

    def _commit(self, repository: Repository, progress: Progress, proof: Proof) -> CommitInfo:
        asked = self.spec if repository.tip is None else self.spec.model_copy(update=_REPAIR)
        message = delivery.commit_message(asked, self.run_id, progress.summary, proof.gate)
        branch = delivery.branch_name(self.spec, self.run_id)
        sha = repository.commit(str(progress.tree), message, author=self.author, at=proof.at)
        return CommitInfo(sha=sha, branch=branch, message=message, verified=proof.gate.status == "passed")

    def _tell_commit(self, repository: Repository, commit: CommitInfo, sink: Teller) -> None:
        sink.emit("commit_created", **commit.model_dump(include={"sha", "branch", "message", "verified"}))
        if not repository.start.continues_branch and repository.tip is None:
            sink.emit("git_branch_created", branch=commit.branch, base=repository.start.name)

    def _push(self, repository: Repository, commit: CommitInfo) -> CommitInfo:
        """Only when nothing of B lives any more, and only if this attempt is still the one."""
        done = commit.model_dump(include=_PUSHED)

        def push() -> dict[str, Any]:
            self.confirm_current()
            landed = landing.land(repository, commit, author=self.author)
            if landed.sha != commit.sha:
                self.sink.emit("warning", message=_MOVED.format(branch=commit.branch), sha=landed.sha)
            return landed.model_dump(include=_PUSHED)

        def find() -> dict[str, Any] | None:
            return done if repository.has_been_pushed(commit.sha, commit.branch) else None

        self.wall.close()
        self.stop.check()
        name = f"push:{repository.tip[:12]}" if repository.tip else "push"
        landed = commit.model_copy(update=dict(self.intents.once(name, push, find)))
        if landed.sha != commit.sha:
            landing.follow(repository, landed)
        url = delivery.commit_url(self.spec, landed.sha, self.github_url)
        return landed.model_copy(update={"pushed": True, "url": url})
