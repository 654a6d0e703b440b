"""Ends runs that the state machine can no longer end: its execution failed, was stopped, or never began."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sandpiper.errors import NotFound
from sandpiper.logic.ids import RUN_ID
from sandpiper.logic.outcomes import Ending

if TYPE_CHECKING:
    from sandpiper.logic.workflow_steps import Steps
    from sandpiper.models.run import Run

# A run is created, then its execution: a sweep in between must not take it for lost.
GRACE = timedelta(minutes=10)


@dataclass(frozen=True)
class Reconciler:
    steps: Steps

    def execution_ended(self, run_id: str, status: str, cause: str) -> list[Run]:
        """The run of an execution that ended badly, if it had to be ended here. Other executions are not ours."""
        if not RUN_ID.fullmatch(run_id):
            return []
        try:
            return self._finalize(run_id, Ending(error=status, cause=cause))
        except NotFound:
            return []

    def sweep(self) -> list[Run]:
        """Finalize the runs that claim to be under way while no execution is."""
        before = self.steps.clock.now() - GRACE
        candidates = list(self.steps.runs.live(unchanged_since=before))
        lost = [run for run in candidates if not self.steps.workflow.is_running(run.run_id)]
        ending = Ending(error="ExecutionMissing", cause="no execution was running for this run")
        return [mended for run in lost for mended in self._finalize(run.run_id, ending)]

    def _finalize(self, run_id: str, ending: Ending) -> list[Run]:
        finalized = self.steps.finalize(run_id, ending)
        return [finalized.run] if finalized.just_now else []
