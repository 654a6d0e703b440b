"""What is said about a commit: our own checks, and those of the repository's CI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sandpiper import limits
from sandpiper.errors import GitHubError
from sandpiper.models.base import Model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandpiper.adapters.github.client import GitHubClient

Conclusion = Literal["success", "failure", "neutral"]
_NOT_FOR_US = frozenset({403, 404})
_RED = frozenset({"failure", "timed_out", "cancelled", "startup_failure", "action_required"})
_ACTIONS = "github-actions"


class Verdict(Model):
    """A check of ours that has come to its end."""

    name: str
    conclusion: Conclusion
    title: str
    summary: str
    url: str | None = None


class CheckRun(Model):
    id: int
    name: str
    is_done: bool
    is_red: bool
    is_action: bool  # then its id is that of a job, which has a log
    words: str = ""


@dataclass(frozen=True)
class Checks:
    """Of one commit. Everything raises GitHubError."""

    client: GitHubClient
    repository: str
    sha: str

    def report(self, verdict: Verdict, *, external_id: str) -> dict[str, Any]:
        """As a check run, which the App may make wherever it is installed."""
        return {"check_run_id": self._create(verdict, external_id)}

    def find(self, name: str, *, external_id: str) -> dict[str, Any] | None:
        """The check of ours that an earlier attempt may have made."""
        runs = self._listed("check-runs", "check_runs", check_name=name)
        found = (run["id"] for run in runs if run.get("external_id") == external_id)
        return next(({"check_run_id": id_} for id_ in found), None)

    def runs(self) -> list[CheckRun]:
        """Everything that was said about the commit, statuses of the older kind too."""
        runs = self._listed("check-runs", "check_runs", filter="latest")
        return [*map(_check_run, runs), *map(_of_status, self._statuses())]

    def open_suites(self) -> int:
        """Suites that have begun and are not done. One that has no runs has not begun, and may never."""
        suites = self._listed("check-suites", "check_suites")
        return sum(
            1 for suite in suites if suite["status"] != "completed" and suite.get("latest_check_runs_count", 1) > 0
        )

    def log(self, run: CheckRun) -> str:
        """How the log of a job ended; for any other check what it says of itself."""
        if not run.is_action:
            return run.words
        path = f"/repos/{self.repository}/actions/jobs/{run.id}/logs"
        return self.client.tail(path, at_most=limits.CI_LOG_BYTES).decode(errors="replace")

    def _statuses(self) -> list[dict[str, Any]]:
        """None where they are not for us to read: then nothing there is for us to follow."""
        try:
            return list(self._listed("status", "statuses"))
        except GitHubError as error:
            if error.code not in _NOT_FOR_US:
                raise
            return []

    def _listed(self, what: str, key: str, **query: str) -> Iterator[dict[str, Any]]:
        return self.client.pages(f"{self._commit}/{what}", query=query, key=key, limit=limits.GITHUB_LISTED)

    def _create(self, verdict: Verdict, external_id: str) -> int:
        fields = {
            "name": verdict.name,
            "head_sha": self.sha,
            "status": "completed",
            "conclusion": verdict.conclusion,
            "external_id": external_id,
            "output": {"title": verdict.title, "summary": verdict.summary},
        } | ({"details_url": verdict.url} if verdict.url else {})
        return int(self.client.call("POST", f"/repos/{self.repository}/check-runs", fields)["id"])

    @property
    def _commit(self) -> str:
        return f"/repos/{self.repository}/commits/{self.sha}"


def _check_run(run: dict[str, Any]) -> CheckRun:
    output = run.get("output") or {}
    return CheckRun(
        id=run["id"],
        name=run["name"],
        is_done=run["status"] == "completed",
        is_red=run.get("conclusion") in _RED,
        is_action=(run.get("app") or {}).get("slug") == _ACTIONS,
        words="\n".join(filter(None, (output.get("title"), output.get("summary"), output.get("text")))),
    )


def _of_status(status: dict[str, Any]) -> CheckRun:
    return CheckRun(
        id=status["id"],
        name=status["context"],
        is_done=status["state"] != "pending",
        is_red=status["state"] in {"failure", "error"},
        is_action=False,
        words=status.get("description") or "",
    )
