"""What a run hands back: everything that is known, redacted, with the diff kept whatever the outcome."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sandbox_task.stopping import Stopped
from sandpiper.errors import RunError
from sandpiper.models.run import DiffStat, ErrorInfo, RunResult

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.redaction import Redactor
    from sandbox_task.reporter import Reporter
    from sandbox_task.suspension import Suspended
    from sandbox_task.work import Work
    from sandpiper.ports import Blobs

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Ending:
    outcome: Literal["completed", "failed", "cancelled", "timed_out", "suspended"]
    error: ErrorInfo | None = None
    wait: Suspended | None = None

    @property
    def words(self) -> str:
        return self.wait.message if self.wait else self.error.message if self.error else ""


def ending_of(error: Exception) -> Ending:
    """How a run ends that was ended by this, in words for the person who started it."""
    if isinstance(error, Stopped):
        if error.reason == "timed_out":
            return Ending("timed_out", ErrorInfo(type="timeout", message="The run's time was up."))
        return Ending("cancelled", ErrorInfo(type="cancelled", message="The run was cancelled."))
    if isinstance(error, RunError):
        return Ending("failed", ErrorInfo(type=error.type, message=error.message, retryable=error.retryable))
    message = f"Sandpiper itself failed ({type(error).__name__}); the log has the details."
    return Ending("failed", ErrorInfo(type="internal_error", message=message, retryable=True))


@dataclass(frozen=True)
class Results:
    blobs: Blobs
    reporter: Reporter
    redactor: Redactor
    private: Path
    diff_key: str

    def without_work(self, ending: Ending) -> RunResult:
        """Of a run that ended before its work began."""
        return self._clean(RunResult(outcome=ending.outcome, summary=ending.words, error=ending.error))

    def of(self, work: Work, ending: Ending) -> RunResult:
        stat, diff_key = self._keep_diff(work)
        progress = work.progress
        return self._clean(
            RunResult(
                outcome=ending.outcome,
                summary=ending.wait.message if ending.wait else progress.summary or ending.words,
                error=ending.error,
                suspend_reason=ending.wait.reason if ending.wait else None,
                question=ending.wait.question if ending.wait else None,
                exhausted=ending.wait.exhausted if ending.wait else None,
                approval=ending.wait.approval if ending.wait else None,
                limits=work.allowance.in_force if ending.wait else None,
                inbox_seen=work.inbox.seen,
                plan=work.plan,
                gate=progress.gate,
                story=progress.story,
                findings=progress.findings,
                suites=progress.suites,
                commit=progress.commit,
                pull_request=progress.pull_request,
                ci=progress.ci,
                diff_stat=stat,
                diff_key=diff_key,
                usage=work.usage,
                durations_ms=progress.durations_ms,
                model=work.model.name,
            )
        )

    def _keep_diff(self, work: Work) -> tuple[DiffStat | None, str | None]:
        """Nothing that goes wrong here may cost the run its result."""
        try:
            return self._upload_diff(work)
        except Exception as error:  # noqa: BLE001 - see above
            self.reporter.note("".join(traceback.format_exception(error)))
            self.reporter.emit("warning", message=f"The diff could not be kept: {error}")
            return None, None

    def _upload_diff(self, work: Work) -> tuple[DiffStat | None, str | None]:
        repository = work.progress.repository
        if repository is None:
            return None, None
        if work.progress.at_work:
            work.take_tree()
        tree = repository.own_work(str(work.progress.tree))
        stat, key = repository.stat(tree), self.diff_key
        raw, clean = self.private / "diff.raw", self.private / "diff.patch"
        repository.write_diff(tree, raw)
        with (
            raw.open(encoding="utf-8", errors="surrogateescape", newline="") as source,
            clean.open("w", encoding="utf-8", errors="surrogateescape", newline="") as target,
        ):
            target.writelines(self.redactor.text(line) for line in source)
        with clean.open("rb") as file:
            self.blobs.put_file(key, file, content_type=TEXT)
        self.reporter.emit("diff_generated", key=key, **stat.model_dump())
        return stat, key

    def _clean(self, result: RunResult) -> RunResult:
        return RunResult.model_validate(self.redactor.data(result.model_dump(mode="json")))
