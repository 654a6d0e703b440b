"""One attempt from its first breath to its report. Whatever happens in between, there is a result, a diff and a log."""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sandbox_task.agent.approvals import Approvals
from sandbox_task.allowance import Allowance
from sandbox_task.asking import Asking
from sandbox_task.checkpoint import Checkpoints
from sandbox_task.control import Control
from sandbox_task.github.opening import Opening
from sandbox_task.inbox import Inbox
from sandbox_task.intents import Intents
from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.egress.for_run import policy_for_run
from sandbox_task.isolation.egress.gateway import Gateway
from sandbox_task.isolation.wall import WallError
from sandbox_task.logfile import LogFile
from sandbox_task.model.catalogue import PriceList
from sandbox_task.model.resilient import ResilientModel
from sandbox_task.publishing import Publisher, told_before
from sandbox_task.redaction import Redactor
from sandbox_task.reporter import Reporter
from sandbox_task.results import Ending, Results, ending_of
from sandbox_task.stopping import Stop, Stopped
from sandbox_task.suspension import Suspended
from sandbox_task.work import Work
from sandbox_task.workspace.git_relay import GitRelay
from sandpiper.errors import Conflict, Fenced, NotFound, RunError
from sandpiper.logic.artifacts import log_key
from sandpiper.models.events import NewEvent
from sandpiper.models.spec import RunSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sandbox_task.github.hub import Hub
    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from sandbox_task.model.port import Model
    from sandbox_task.settings import Settings
    from sandpiper.github_ports import HeadWatch, RepositoryTokens
    from sandpiper.models.run import RunResult
    from sandpiper.ports import Blobs, Clock, Runs, RunSecrets, Workflow

REPORTED, FENCED, HUNG, TERMINATED = 0, 3, 4, 143


@dataclass(frozen=True)
class Services:
    runs: Runs
    blobs: Blobs
    secrets: RunSecrets
    workflow: Workflow
    clock: Clock
    tokens: RepositoryTokens | None = None
    watch: HeadWatch | None = None


class Supervisor:
    def __init__(
        self,
        settings: Settings,
        services: Services,
        rooms: Rooms,
        stop: Stop,
        *,
        make_models: Callable[[str], Sequence[Model]],
        known_secrets: Sequence[str] = (),
    ) -> None:
        self._settings, self._services, self._rooms, self._stop = settings, services, rooms, stop
        self._make_models = make_models
        self._token = settings.task_token.get_secret_value()
        self._redactor = Redactor([*known_secrets, self._token, settings.anthropic_api_key.get_secret_value()])
        self._log = LogFile(services.blobs, settings.run_id, settings.attempt)
        self._reporter = Reporter(
            services.runs,
            settings.run_id,
            attempt=settings.attempt,
            redactor=self._redactor,
            log=self._log,
            stop=stop,
        )
        self._results = Results(services.blobs, self._reporter, self._redactor, rooms.private, self._key("diff.patch"))
        self._control = Control(
            services.runs,
            services.workflow,
            stop,
            run_id=settings.run_id,
            attempt=settings.attempt,
            token=self._token,
            on_trouble=self._reporter.note,
            on_hang=lambda: os._exit(HUNG),
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
        self._used = run.usage
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
            return self._results.without_work(ending)
        try:
            return self._results.of(work, self._perform(work))
        finally:
            work.close()

    def _perform(self, work: Work) -> Ending:
        try:
            with self._stop.listening(work.wall.interrupt):
                return self._performed(work)
        except Exception as error:  # noqa: BLE001 - as above
            return self._ending(error)

    def _performed(self, work: Work) -> Ending:
        try:
            work.perform()
        except Suspended as wait:
            return self._suspended(work, wait)
        except Stopped as stopped:
            return self._stopped(work, stopped)
        return Ending("completed")

    def _stopped(self, work: Work, stopped: Stopped) -> Ending:
        if stopped.reason == "terminated":
            work.hand_over()
        if stopped.reason != "paused":
            raise stopped
        self._stop.settle()
        return self._suspended(work, Suspended("paused", "The run was paused in the middle of its work."))

    def _suspended(self, work: Work, wait: Suspended) -> Ending:
        work.checkpoint(wait)
        return Ending("suspended", wait=wait)

    def _prepare(self) -> Work:
        spec = self._load_spec()
        checkpoints = self._checkpoints()
        left_off = checkpoints.load()
        allowance = Allowance(spec, seconds_before=left_off.seconds_used if left_off else 0.0)
        inbox = Inbox(left_off.inbox_seen if left_off else 0)
        self._control.serve(allowance, inbox)
        secrets = self._services.secrets.get(self._settings.run_id)
        self._redactor.learn(secrets.values())
        model = ResilientModel(
            self._make_models(spec.model),
            prices=PriceList(self._settings.model_prices),
            sink=self._reporter,
            stop=self._stop,
        )
        given = secrets.get("github_token")
        github = Opening(self._settings, self._services, spec, self._reporter, self._redactor, given).hub()
        gateway = self._gateway(spec, github)
        wall = put_up_wall(
            self._settings.sandpiper_sandbox,
            self._rooms,
            tools=self._settings.sandbox_tools_dir,
            worker_uid=self._settings.worker_uid,
            gateway=gateway,
        )
        self._reporter.note(f"walls: {', '.join(wall.walls)}")
        return Work(
            spec=spec,
            wall=wall,
            rooms=self._rooms,
            model=model,
            sink=self._reporter,
            stop=self._stop,
            clock=self._services.clock,
            allowance=allowance,
            inbox=inbox,
            checkpoints=checkpoints,
            gateway=gateway,
            find_policy=partial(policy_for_run, self._settings, spec.egress, environ=os.environ),
            publisher=self._publisher(spec, wall),
            approvals=self._approvals(spec, wall, allowance, inbox, gateway),
            github=github,
            left_off=left_off,
            used=self._used,
        )

    def _gateway(self, spec: RunSpec, github: Hub) -> Gateway:
        url, token, moved_to = spec.repo_url, github.token, github.moved_to
        relay = GitRelay(url, token=token, moved_to=moved_to).server if url else None
        return Gateway(on_refusal=self._tell_refusal, git=relay)

    def _tell_refusal(self, host: str, reason: str) -> None:
        self._reporter.emit("warning", message=f"A command could not reach {host}: {reason}.", host=host, reason=reason)

    def _checkpoints(self) -> Checkpoints:
        return Checkpoints(
            self._services.runs,
            self._services.blobs,
            self._settings.run_id,
            self._settings.attempt,
            self._rooms.private,
            self._redactor,
        )

    def _approvals(self, spec: RunSpec, wall: Wall, allowance: Allowance, inbox: Inbox, gateway: Gateway) -> Approvals:
        run_id, attempt = self._settings.run_id, self._settings.attempt
        return Approvals(
            run_id,
            spec.trust_level,
            wall.workspace,
            inbox,
            self._stop,
            allowance,
            announce=Asking(self._services.runs, run_id, attempt, self._reporter, self._redactor),
            now=self._services.clock.now,
            wait_seconds=self._settings.approval_wait_seconds,
            may_open=gateway.may_ask_for,
        )

    def _publisher(self, spec: RunSpec, wall: Wall) -> Publisher:
        run_id = self._settings.run_id
        return Publisher(
            run_id=run_id,
            spec=spec,
            github_url=self._settings.github_url,
            author=self._author(spec),
            wall=wall,
            sink=self._reporter,
            stop=self._stop,
            confirm_current=self._control.confirm_current,
            intents=Intents(self._services.runs, run_id, self._settings.attempt, self._services.clock),
            told_before=partial(told_before, self._services.runs, run_id, self._settings.attempt),
        )

    def _author(self, spec: RunSpec) -> tuple[str, str]:
        """The same in all attempts, or their commits would not be the same."""
        if spec.github and (app := spec.github.author):
            return app.name, app.email
        return self._settings.commit_author_name, self._settings.commit_author_email

    def _load_spec(self) -> RunSpec:
        key = f"runs/{self._settings.run_id}/spec.json"
        try:
            return RunSpec.model_validate_json(self._services.blobs.get(key))
        except NotFound as error:
            raise RunError("internal_error", f"The run's specification {key} is missing.") from error

    def _ending(self, error: Exception) -> Ending:
        if isinstance(error, Fenced) or self._stop.is_fenced:
            raise Fenced("Another attempt has taken over this run.") from error
        if isinstance(error, WallError) and self._stop.reason:  # what was in hand behind it has been broken off
            error = Stopped(self._stop.reason)
        if not isinstance(error, Stopped | RunError):
            self._reporter.note("".join(traceback.format_exception(error)))
        return ending_of(error)

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
        answer = {"outcome": "finished", "result_key": key}
        if final.outcome == "suspended":
            answer |= {"outcome": "suspended", "reason": final.suspend_reason or "paused"}
        self._services.workflow.succeed(self._token, answer)
        return REPORTED

    def _hand_over(self) -> int:
        """The container is being taken away from us: the workflow decides about the next attempt."""
        self._reporter.flush()
        self._log.close()
        self._services.workflow.fail(self._token, "SandboxTerminated", "The sandbox was told to stop (SIGTERM).")
        return TERMINATED

    def _store_log(self, result: RunResult) -> str:
        key = log_key(self._settings.run_id, self._settings.attempt)
        self._reporter.note(f"{result.outcome}: {result.summary}")
        self._reporter.flush()
        self._log.close()
        self._reporter.emit("log_stored", key=key, bytes=self._log.store_whole(key))
        return key

    def _key(self, name: str) -> str:
        return f"runs/{self._settings.run_id}/attempts/{self._settings.attempt}/{name}"
