"""Everything that a run has to do with GitHub beyond git itself. A run without GitHub has a hub that does nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox_task.github import verdicts
from sandbox_task.github.doing import made
from sandbox_task.github.pull_diff import PullDiff
from sandpiper import limits
from sandpiper.adapters.github.checks import Checks
from sandpiper.errors import GitHubError

if TYPE_CHECKING:
    from sandbox_task.agent.ports import Sink
    from sandbox_task.github.following import Following
    from sandbox_task.github.pulling import PullRequests
    from sandbox_task.github.reviewing import Reviewing
    from sandbox_task.github.status import StatusComment
    from sandbox_task.intents import Intents
    from sandbox_task.options import Options
    from sandbox_task.progress import Progress
    from sandbox_task.workspace.git import MovedTo, Token
    from sandbox_task.workspace.repository import Repository
    from sandpiper.adapters.github.checks import Verdict
    from sandpiper.adapters.github.client import GitHubClient
    from sandpiper.models.run import GateReport
    from sandpiper.models.spec import RunSpec


@dataclass(frozen=True)
class Hub:
    spec: RunSpec
    run_id: str
    token: Token
    link: str | None
    sink: Sink
    intents: Intents
    pull_requests: PullRequests
    client: GitHubClient | None = None
    reviewing: Reviewing | None = None
    following: Following | None = None
    status: StatusComment | None = None
    moved_to: MovedTo = None

    @property
    def starts_at(self) -> str | None:
        """A pull request is worked on as it was when the run was asked for, whatever comes later."""
        pull = self.spec.github.pull if self.spec.github else None
        return pull.head_sha if pull else None

    def told_first(self, repository: Repository) -> str:
        """For the model, as data: what the pull request is, that is reviewed or worked on."""
        pull = self.spec.github.pull if self.spec.github else None
        if self.reviewing:
            return f"\n\n{self.reviewing.told_first(repository)}"
        return f"\n\n{PullDiff(pull).told(repository, tokens=limits.WORK_DIFF_TOKENS)}" if pull else ""

    def report(self, repository: Repository, progress: Progress, options: Options) -> None:
        """What read-only work has found out, on the pull request that it was about. Raises RunError, Fenced."""
        if self.reviewing:
            self.reviewing.submit(repository, progress, options.review)
        if self.spec.type == "code-review":
            self._check(verdicts.of_review(progress.findings, progress.summary, options.review, url=self.link))
        else:
            self._check(verdicts.of_suites(progress.suites, progress.summary, url=self.link))

    def publish(self, repository: Repository, progress: Progress, gate: GateReport, options: Options) -> None:
        """After the push. Raises RunError, Fenced, and Suspended if CI is to be waited for."""
        self.pull_requests.publish(repository, progress, gate)
        if self.following and (options.follow_ci or (self.spec.github and self.spec.github.follow_ci)):
            self.following.wait(progress, repository)

    def close(self) -> None:
        """Nothing is said on GitHub any more when this returns."""
        if self.status:
            self.status.close()

    def _check(self, verdict: Verdict) -> None:
        """Beside the review or the run's own report: a check that can't be shown fails nothing."""
        origin = self.spec.github
        if self.client is None or origin is None or origin.pull is None:
            return
        checks = Checks(self.client, origin.repository, origin.pull.head_sha)

        def find() -> dict[str, int] | None:
            return checks.find(verdict.name, external_id=self.run_id)

        try:
            self.intents.once(
                f"check:{verdict.name}",
                do=lambda: made(lambda: checks.report(verdict, external_id=self.run_id), find),
                find=find,
            )
        except GitHubError as error:
            self.sink.emit("warning", message=f"The check {verdict.name} could not be shown: {error.message}")
