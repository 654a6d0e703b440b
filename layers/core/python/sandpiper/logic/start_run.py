"""Starting a run so that nothing is lost: the row is written first, and a start that fails is told in it.

| step | what can fail | what happens then |
|---|---|---|
| create the row | the id is taken (same Idempotency-Key) | the same run, started again if it never was |
| | a quota is used up | nothing is written, the caller gets a 429 that says when to try again |
| store the secrets, start the execution | the service | the run is `failed`, the caller gets a 503 to try again |
| start the execution | only the answer is lost | the run has moved on, so it counts as started |
| mark the run failed | the database | the caller gets the 503 all the same; `reconcile` finds the run |
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper.errors import Conflict, Unavailable
from sandpiper.logic import ids, statuses
from sandpiper.models.events import NewEvent
from sandpiper.models.run import ErrorInfo, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sandpiper.logic.quotas import QuotaRules
    from sandpiper.models.identity import Identity
    from sandpiper.models.spec import RunSpec
    from sandpiper.ports import Clock, Runs, RunSecrets, Workflow

# A key whose run could not be started may be used again: each try has an id of its own.
_STARTS_PER_KEY = 5

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Starter:
    runs: Runs
    secrets: RunSecrets
    workflow: Workflow
    clock: Clock
    quotas: QuotaRules

    def start(self, spec: RunSpec, identity: Identity, secrets: Mapping[str, str], key: str | None = None) -> Run:
        """A new run, or the one that `key` has started before. Raises Conflict, QuotaExceeded, Unavailable."""
        run = self._create(spec, identity, key)
        if run.status == "queued":
            self._launch(run, secrets)
        return run

    def _create(self, spec: RunSpec, identity: Identity, key: str | None) -> Run:
        if key is None:
            return self._insert(ids.new_run_id(self.clock.now()), spec, identity)
        for retry in range(_STARTS_PER_KEY):
            run_id = ids.run_id_for_key(identity.user, key, retry=retry)
            try:
                return self._insert(run_id, spec, identity)
            except Conflict:
                earlier = self._same_run(run_id, spec)
            if not _never_started(earlier):
                return earlier
        raise Conflict("This Idempotency-Key has been used for too many starts that failed. Use a new one.")

    def _insert(self, run_id: str, spec: RunSpec, identity: Identity) -> Run:
        now = self.clock.now()
        run = Run(run_id=run_id, owner=identity.user, org=identity.org, spec=spec, created_at=now, updated_at=now)
        queued = NewEvent(type="run_queued", data={"type": spec.type, "repo": spec.repo, "task": spec.task})
        return self.runs.create(run, [queued, *_warnings(spec)], admit=self.quotas.admit)

    def _same_run(self, run_id: str, spec: RunSpec) -> Run:
        earlier = self.runs.get(run_id)
        if earlier.spec != spec:
            raise Conflict("This Idempotency-Key was used with another body.")
        return earlier

    def _launch(self, run: Run, secrets: Mapping[str, str]) -> None:
        try:
            if secrets:
                self.secrets.put(run.run_id, secrets)
            self.workflow.start(run.run_id, {"run_id": run.run_id})
        except Exception as failure:  # noqa: BLE001 - whatever it was, the row must not stay queued for ever
            self._give_up(run, failure)

    def _give_up(self, run: Run, failure: Exception) -> None:
        try:
            self._fail(run)
        except Conflict:
            # It was started after all, only the answer was lost, and its execution has moved it on.
            return
        except Exception:
            logger.exception("a run that was not started could not be marked so", extra={"run_id": run.run_id})
        raise Unavailable("The run could not be started. Try again in a moment.") from failure

    def _fail(self, run: Run) -> None:
        error = ErrorInfo(type="internal_error", message="The run could not be started.", retryable=True)
        self.runs.change(
            run.run_id,
            allowed=("queued",),
            changes={"status": "failed", "error": error, "ended_at": self.clock.now()},
            events=[NewEvent(type=statuses.EVENT_OF_END["failed"], data={"error": error.model_dump()})],
        )
        self.secrets.delete(run.run_id)


def wait_for_end(runs: Runs, run: Run, *, polls: int, pause: Callable[[], None]) -> Run:
    """The run as it is when it has ended, or after so many looks at it."""
    for _ in range(polls):
        if run.is_terminal:
            break
        pause()
        run = runs.get(run.run_id)
    return run


def _never_started(run: Run) -> bool:
    return run.status == "failed" and run.attempt == 0 and run.error is not None and run.error.type == "internal_error"


def _warnings(spec: RunSpec) -> list[NewEvent]:
    if not spec.unused_options:
        return []
    message = f"Accepted without effect: {', '.join(spec.unused_options)}."
    return [NewEvent(type="warning", data={"message": message, "options": list(spec.unused_options)})]
