"""The pull request of a run: opened once, or the one that its branch has already."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from sandbox_task.github import pull_text
from sandbox_task.github.doing import made
from sandpiper import limits
from sandpiper.adapters.github.pulls import as_info
from sandpiper.errors import GitHubError, RunError
from sandpiper.models.run import PullRequestInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from sandbox_task.agent.ports import Sink
    from sandbox_task.intents import Intents
    from sandbox_task.progress import Progress
    from sandbox_task.workspace.repository import Repository
    from sandpiper.adapters.github.pulls import Pulls
    from sandpiper.models.events import EventType
    from sandpiper.models.run import CommitInfo, GateReport
    from sandpiper.models.spec import RunSpec

_LABELS = ("sandpiper",)
_REFUSED = 422


@dataclass
class PullRequests:
    """`pulls` is None where there is no GitHub to ask or no token to ask with; `why_none` says which."""

    spec: RunSpec
    run_id: str
    link: str | None
    pulls: Pulls | None
    why_none: str
    intents: Intents
    sink: Sink
    told_before: Callable[[], Collection[str]]  # the types of the events that earlier attempts have told
    _known: Mapping[str, Any] = field(default_factory=dict)

    def require_open(self) -> None:
        """Before a push to a pull request's branch. Raises RunError if nobody would see it."""
        if self.pulls is None or not (self.spec.github and self.spec.github.pull):
            return
        number = self.spec.github.number
        try:
            self._known = self.pulls.get(number)
        except GitHubError as error:
            complaint = f"The pull request #{number} can't be read, so nothing was pushed: {error.message}"
            raise RunError("repository_error", complaint, retryable=error.retryable) from error
        if self._known["state"] != "open":
            ended = "merged" if self._known.get("merged") else "closed"
            complaint = f"The pull request #{number} was {ended} while the run was working, so nothing was pushed."
            raise RunError("repository_error", complaint)

    def publish(self, repository: Repository, progress: Progress, gate: GateReport) -> None:
        """After the push. Raises RunError in words, Fenced."""
        commit = progress.commit
        if commit is None or not commit.pushed:
            return
        if self._known or progress.pull_request:
            self._tell_updated(progress, commit)
        elif self._is_wanted():
            progress.pull_request = self._opened(repository, progress, commit, gate)

    def _is_wanted(self) -> bool:
        if not (self.spec.create_pr or self.spec.github):
            return False
        if self.pulls is None:
            self.sink.emit("warning", message=f"No pull request was opened: {self.why_none}")
        return self.pulls is not None

    def _tell_updated(self, progress: Progress, commit: CommitInfo) -> None:
        pull = progress.pull_request = progress.pull_request or as_info(self._known)
        self.sink.emit("pr_updated", number=pull.number, url=pull.url, sha=commit.sha)

    def _opened(
        self, repository: Repository, progress: Progress, commit: CommitInfo, gate: GateReport
    ) -> PullRequestInfo:
        body = pull_text.pull_body(
            self.spec,
            self.run_id,
            summary=progress.summary,
            gate=gate,
            commit=commit,
            story=progress.story,
            link=self.link,
        )
        try:
            done = self.intents.once(
                "pull_request",
                do=lambda: self._open(repository, commit, body, draft=not commit.verified),
                find=lambda: self._found(commit.branch),
            )
        except GitHubError as error:
            complaint = f"The work is on the branch {commit.branch}, but its pull request could not be opened: "
            raise RunError("repository_error", complaint + error.message, retryable=error.retryable) from error
        info = PullRequestInfo.model_validate({name: done[name] for name in PullRequestInfo.model_fields})
        event: EventType = "pr_opened" if done["is_new"] else "pr_updated"
        if event not in self.told_before():
            self.sink.emit(event, **info.model_dump(), branch=commit.branch, sha=commit.sha)
        return info

    def _open(self, repository: Repository, commit: CommitInfo, body: str, *, draft: bool) -> dict[str, Any]:
        """GitHub refuses a second one, and for a moment a branch that it does not see yet."""
        title, base = pull_text.pull_title(commit), self._base(repository)

        def do(*, draft: bool) -> dict[str, Any]:
            info = self._pulls.open(title=title, body=body, head=commit.branch, base=base, draft=draft)
            return {**info.model_dump(), "is_new": True}

        for pause in (*limits.GITHUB_PAUSES_SECONDS[:2], None):
            try:
                opened = made(partial(do, draft=draft), lambda: self._found(commit.branch))
            except GitHubError as error:
                if error.code == _REFUSED and (there := self._pulls.find_open(commit.branch)):
                    return self._rewritten(there, title, body)
                draft = _draft_next(error, pause, draft=draft)
            else:
                self._label(opened["number"])
                return opened
        raise AssertionError("the last try raises or returns")

    def _rewritten(self, pull: Mapping[str, Any], title: str, body: str) -> dict[str, Any]:
        """The words of a person stay as they are."""
        if pull_text.is_ours(pull.get("body")):
            self._pulls.update(pull["number"], {"title": title, "body": body})
        return {**as_info(pull).model_dump(), "is_new": False}

    def _found(self, branch: str) -> dict[str, Any] | None:
        there = self._pulls.find_open(branch)
        return {**as_info(there).model_dump(), "is_new": True} if there else None

    def _label(self, number: int) -> None:
        try:
            self._pulls.add_labels(number, _LABELS)
        except GitHubError as error:
            self.sink.emit("warning", message=f"The pull request #{number} has no label: {error.message}")

    def _base(self, repository: Repository) -> str:
        """Where the work started, if that is a branch; else the repository's main one."""
        start = repository.start
        ref = start.settled if start.continues_branch else start.ref
        if ref and ref.startswith("refs/heads/"):
            return ref.removeprefix("refs/heads/")
        return self._pulls.default_branch()

    @property
    def _pulls(self) -> Pulls:
        if self.pulls is None:
            raise AssertionError("there is no GitHub to ask")
        return self.pulls


def _draft_next(error: GitHubError, pause: float | None, *, draft: bool) -> bool:
    """Whether the next try is one: where GitHub knows no drafts, it is none. Raises it if there is none."""
    if error.code != _REFUSED or pause is None:
        raise error
    if draft and "draft" in error.message.lower():
        return False
    time.sleep(pause)
    return draft
