"""What people may ask of a run that is under way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper.errors import Conflict, Fenced
from sandpiper.logic import statuses
from sandpiper.logic.access import own_run

if TYPE_CHECKING:
    from sandpiper.models.identity import Identity
    from sandpiper.models.run import Run
    from sandpiper.ports import Clock, Runs, Workflow


@dataclass(frozen=True)
class Controls:
    runs: Runs
    workflow: Workflow
    clock: Clock

    def cancel(self, run_id: str, identity: Identity) -> Run:
        """The run with the wish noted, or as it is if it has been cancelled already. Raises NotFound, Conflict."""
        run = own_run(self.runs, run_id, identity)
        if run.status == "cancelled":
            return run
        if not run.cancel_requested:
            run = self._request_cancel(run, identity)
        self._wake(run)
        return run

    def _request_cancel(self, run: Run, identity: Identity) -> Run:
        if run.is_terminal:
            raise Conflict(f"Run {run.run_id} has ended already: {run.status}.")
        # The row first: who reads `resume_token` after this write, or writes it, sees the wish.
        run = self.runs.change(run.run_id, allowed=statuses.LIVE, changes={"cancel_requested": True})
        now = self.clock.now()
        self.runs.put_control(run.run_id, {"action": "cancel", "by": identity.user, "at": now, "data": {}})
        return run

    def _wake(self, run: Run) -> None:
        if run.resume_token is None:
            return
        try:
            self.workflow.succeed(run.resume_token, {"cancelled": True})
        except Fenced:
            # It has been woken by somebody else; the next step of the workflow looks at `cancel_requested`.
            return
