"""One attempt from its first breath to its report. Whatever happens in between, there is a result, a diff and a log."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sandbox_task.control import Control
from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.logfile import LogFile
from sandbox_task.model.interruptible import InterruptibleModel
from sandbox_task.redaction import Redactor
from sandbox_task.reporter import Reporter
from sandbox_task.stopping import Stop, Stopped
from sandbox_task.work import Work
from sandpiper.errors import Conflict, Fenced, NotFound, RunError
from sandpiper.models.events import NewEvent
from sandpiper.models.run import DiffStat, ErrorInfo, RunResult
from sandpiper.models.spec import RunSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.model.port import Model
    from sandbox_task.settings import Settings
    from sandpiper.ports import Blobs, Clock, Runs, RunSecrets, Workflow

REPORTED, FENCED, TERMINATED = 0, 3, 143
_Outcome = Literal["completed", "failed", "cancelled", "timed_out"]
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Services:
    runs: Runs
    blobs: Blobs
    secrets: RunSecrets
    workflow: Workflow
    clock: Clock


@dataclass(frozen=True)
class Ending:
    outcome: _Outcome
    error: ErrorInfo | None = None


class Supervisor:
    def __init__(
        self,
        settings: Settings,
        services: Services,
        rooms: Rooms,
        stop: Stop,
        *,
        make_model: Callable[[str], Model],
        known_secrets: Sequence[str] = (),
    ) -> None:
        self._settings, self._services, self._rooms, self._stop = settings, services, rooms, stop
        self._make_model = make_model
        self._token = settings.task_token.get_secret_value()
        self._redactor = Redactor([*known_secrets, self._token, settings.anthropic_api_key.get_secret_value()])
        self._log = LogFile(rooms.private / "log.txt")
        self._reporter = Reporter(
            services.runs,
            settings.run_id,
            attempt=settings.attempt,
            redactor=self._redactor,
            log=self._log,
            stop=stop,
        )
        self._control = Control(
            services.runs,
            services.workflow,
            stop,
            run_id=settings.run_id,
            attempt=settings.attempt,
            token=self._token,
            on_trouble=self._reporter.note,
        )

    def run(self) -> int:
        """The exit code of the process."""
        try:
            self._begin()
            self._control.start()
            return self._report(self._attempt())
        except Fenced:
            self._stop.request("fenced")
            return FENCED
        finally:
            self._control.close()
            self._reporter.close()
            self._log.close()

    def _begin(self) -> None:
        """Say that the run is running. Raises Fenced if it is somebody else's by now, or over."""
        run = self._services.runs.get(self._settings.run_id)
        now = self._services.clock.now()
        started = NewEvent(type="run_started", data={"attempt": self._settings.attempt})
        try:
            self._services.runs.change(
                run.run_id,
                allowed=("provisioning", "running"),
                changes={"status": "running", "started_at": run.started_at or now},
                events=[started],
                attempt=self._settings.attempt,
            )
        except Conflict as error:
            raise Fenced(error.message) from error

    def _attempt(self) -> RunResult:
        """Raises Fenced, and nothing else."""
        try:
            work = self._prepare()
        except Exception as error:  # noqa: BLE001 - a run that we crash ends with a sentence, too
            ending = self._ending(error)
            return self._clean(RunResult(outcome=ending.outcome, error=ending.error))
        try:
            return self._result(work, self._perform(work))
        finally:
            work.wall.close()

    def _perform(self, work: Work) -> Ending:
        try:
            with self._stop.listening(work.wall.interrupt):
                work.perform()
        except Exception as error:  # noqa: BLE001 - as above
            return self._ending(error)
        return Ending("completed")

    def _prepare(self) -> Work:
        spec = self._load_spec()
        self._control.set_deadline(spec.timeout_seconds)
        secrets = self._services.secrets.get(self._settings.run_id)
        self._redactor.learn(secrets.values())
        model = self._make_model(spec.model)
        wall = put_up_wall(
            self._settings.sandpiper_sandbox,
            self._rooms,
            tools=self._settings.sandbox_tools_dir,
            worker_uid=self._settings.worker_uid,
        )
        return Work(
            run_id=self._settings.run_id,
            spec=spec,
            wall=wall,
            rooms=self._rooms,
            model=InterruptibleModel(model, self._stop),
            sink=self._reporter,
            stop=self._stop,
            github_token=secrets.get("github_token"),
            github_url=self._settings.github_url,
            author=(self._settings.commit_author_name, self._settings.commit_author_email),
            confirm_current=self._control.confirm_current,
            now=self._services.clock.now,
        )

    def _load_spec(self) -> RunSpec:
        key = f"runs/{self._settings.run_id}/spec.json"
        try:
            return RunSpec.model_validate_json(self._services.blobs.get(key))
        except NotFound as error:
            raise RunError("internal_error", f"The run's specification {key} is missing.") from error

    def _ending(self, error: Exception) -> Ending:
        if isinstance(error, Fenced) or self._stop.is_fenced:
            raise Fenced("Another attempt has taken over this run.") from error
        if isinstance(error, Stopped):
            if error.reason == "timed_out":
                return Ending("timed_out", ErrorInfo(type="timeout", message="The run's time was up."))
            return Ending("cancelled", ErrorInfo(type="cancelled", message="The run was cancelled."))
        if isinstance(error, RunError):
            return Ending("failed", ErrorInfo(type=error.type, message=error.message, retryable=error.retryable))
        self._reporter.note("".join(traceback.format_exception(error)))
        message = f"Sandpiper itself failed ({type(error).__name__}); the log has the details."
        return Ending("failed", ErrorInfo(type="internal_error", message=message, retryable=True))

    def _result(self, work: Work, ending: Ending) -> RunResult:
        """Everything that is known, redacted; the diff is kept whatever the outcome."""
        stat, diff_key = self._keep_diff(work, ending)
        progress = work.progress
        return self._clean(
            RunResult(
                outcome=ending.outcome,
                summary=progress.summary or (ending.error.message if ending.error else ""),
                error=ending.error,
                plan=work.plan,
                gate=progress.gate,
                commit=progress.commit,
                diff_stat=stat,
                diff_key=diff_key,
                usage=work.usage,
                durations_ms=progress.durations_ms,
                model=work.model.name,
            )
        )

    def _keep_diff(self, work: Work, ending: Ending) -> tuple[DiffStat | None, str | None]:
        """Nothing that goes wrong here may cost the run its result."""
        try:
            return self._upload_diff(work, ending)
        except Exception as error:  # noqa: BLE001 - see above
            self._reporter.note("".join(traceback.format_exception(error)))
            self._reporter.emit("warning", message=f"The diff could not be kept: {error}")
            return None, None

    def _upload_diff(self, work: Work, ending: Ending) -> tuple[DiffStat | None, str | None]:
        repository = work.progress.repository
        if repository is None:
            return None, None
        if ending.outcome != "completed" and work.progress.gate is None:
            work.take_tree()
        tree = str(work.progress.tree)
        stat, key = repository.stat(tree), self._key("diff.patch")
        raw, clean = self._rooms.private / "diff.raw", self._rooms.private / "diff.patch"
        repository.write_diff(tree, raw)
        with (
            raw.open(encoding="utf-8", errors="surrogateescape", newline="") as source,
            clean.open("w", encoding="utf-8", errors="surrogateescape", newline="") as target,
        ):
            target.writelines(self._redactor.text(line) for line in source)
        with clean.open("rb") as file:
            self._services.blobs.put_file(key, file, content_type=_TEXT)
        self._reporter.emit("diff_generated", key=key, **stat.model_dump())
        return stat, key

    def _report(self, result: RunResult) -> int:
        if self._stop.reason == "terminated":
            return self._hand_over()
        log_key = self._store_log(result)
        key = self._key("result.json")
        final = result.model_copy(update={"log_key": log_key})
        self._services.blobs.put(key, final.model_dump_json().encode(), content_type="application/json")
        self._reporter.flush()
        if self._stop.is_fenced:
            return FENCED
        self._services.workflow.succeed(self._token, {"outcome": "finished", "result_key": key})
        return REPORTED

    def _hand_over(self) -> int:
        """The container is being taken away from us: the workflow decides about the next attempt."""
        self._store_log(None)
        self._reporter.flush()
        self._services.workflow.fail(self._token, "SandboxTerminated", "The sandbox was told to stop (SIGTERM).")
        return TERMINATED

    def _store_log(self, result: RunResult | None) -> str:
        key = self._key("log.txt")
        if result is not None:
            self._reporter.note(f"{result.outcome}: {result.summary}")
        size = self._log.close()
        with self._log.path.open("rb") as file:
            self._services.blobs.put_file(key, file, content_type=_TEXT)
        self._reporter.emit("log_stored", key=key, bytes=size)
        return key

    def _clean(self, result: RunResult) -> RunResult:
        return RunResult.model_validate(self._redactor.data(result.model_dump(mode="json")))

    def _key(self, name: str) -> str:
        return f"runs/{self._settings.run_id}/attempts/{self._settings.attempt}/{name}"
