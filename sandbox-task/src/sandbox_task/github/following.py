"""What the repository's own CI says about what was pushed. While it is at work, nothing of ours runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sandbox_task.suspension import Suspended
from sandpiper import limits
from sandpiper.adapters.github.checks import Checks
from sandpiper.errors import GitHubError, RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox_task.agent.ports import Sink
    from sandbox_task.progress import Progress
    from sandbox_task.workspace.repository import Repository
    from sandpiper.adapters.github.checks import CheckRun
    from sandpiper.adapters.github.client import GitHubClient
    from sandpiper.github_ports import HeadWatch
    from sandpiper.models.run import CommitInfo

State = Literal["passed", "failed", "pending", "none"]
_OURS = "sandpiper/"
_WORKFLOWS = ".github/workflows/"


def judge(runs: Sequence[CheckRun], *, open_suites: int, has_workflows: bool) -> State:
    """Red is known as soon as everything has ended: a repair then has all of it to look at."""
    if not runs:
        return "pending" if open_suites or has_workflows else "none"
    if open_suites or not all(run.is_done for run in runs):
        return "pending"
    return "failed" if any(run.is_red for run in runs) else "passed"


@dataclass(frozen=True)
class Following:
    client: GitHubClient
    repository: str  # owner/name
    place: str  # by which a delivery about it finds the run
    run_id: str
    watch: HeadWatch
    sink: Sink

    def wait(self, progress: Progress, repository: Repository) -> None:
        """After a push. Raises Suspended unless CI has passed already, or there is none."""
        commit = progress.commit
        if commit is None or not commit.pushed:
            return
        if commit.sha == progress.ci_red:
            raise RunError("gate_failed", "CI is red, and the agent found nothing to change about it.")
        # Noted before it is looked at: what CI says after the look finds the note.
        self.watch.watch(self.place, commit.sha, self.run_id)
        has_workflows = any(path.startswith(_WORKFLOWS) for path in repository.paths(str(progress.tree)))
        state, _ = self._look(commit, has_workflows=has_workflows)
        progress.ci = None if state == "pending" else state
        if state == "none":
            self.sink.emit("warning", message="There is no CI to follow: the repository has no workflows.")
        elif state != "passed":
            progress.awaits_ci = True
            raise _waiting(commit)

    def result(self, progress: Progress) -> str | None:
        """When the run was woken: what the agent is to repair, or None if all is well.

        Raises Suspended if CI is still at work, RunError if it is red for good.
        """
        commit = progress.commit
        if commit is None:
            raise AssertionError("nothing was pushed that CI could speak about")
        state, red = self._look(commit, has_workflows=True)
        if state == "pending":
            progress.awaits_ci = True
            raise _waiting(commit)
        progress.awaits_ci, progress.ci = False, state
        if state != "failed":
            return None
        if progress.ci_rounds >= limits.CI_ROUNDS:
            complaint = f"CI is still red after {limits.CI_ROUNDS} rounds of repair ({', '.join(_names(red))})"
            raise RunError("gate_failed", f"{complaint}; the work is on its branch.")
        progress.ci_rounds += 1
        progress.ci, progress.ci_red = None, commit.sha
        self.sink.emit("gate_repair_started", checks=_names(red), left=limits.CI_ROUNDS - progress.ci_rounds, ci=True)
        return self._logs(commit, red)

    def _look(self, commit: CommitInfo, *, has_workflows: bool) -> tuple[State, list[CheckRun]]:
        checks = Checks(self.client, self.repository, commit.sha)
        try:
            runs = [run for run in checks.runs() if not run.name.startswith(_OURS)]
            state = judge(runs, open_suites=checks.open_suites(), has_workflows=has_workflows)
        except GitHubError as error:
            complaint = f"What CI says could not be read: {error.message}"
            raise RunError("repository_error", complaint, retryable=error.retryable) from error
        return state, [run for run in runs if run.is_red]

    def _logs(self, commit: CommitInfo, red: Sequence[CheckRun]) -> str:
        checks = Checks(self.client, self.repository, commit.sha)
        told = [f"## {run.name}\n{self._log(checks, run)}" for run in red[: limits.CI_JOBS_TOLD]]
        more = [f"Also red: {', '.join(_names(red[limits.CI_JOBS_TOLD :]))}"] if len(red) > limits.CI_JOBS_TOLD else []
        return "\n\n".join((*told, *more))

    def _log(self, checks: Checks, run: CheckRun) -> str:
        try:
            return checks.log(run)
        except GitHubError as error:
            return f"(its log can't be read: {error.message})\n{run.words}"


def _waiting(commit: CommitInfo) -> Suspended:
    return Suspended("awaiting_ci", f"The run waits for CI on {commit.sha[:12]}.")


def _names(runs: Sequence[CheckRun]) -> list[str]:
    return [run.name for run in runs]
