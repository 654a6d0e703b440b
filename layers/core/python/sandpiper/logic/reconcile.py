"""Mends what nothing else will: runs that nobody works on, and what is kept for runs that need nothing any more.

| found | how it can come about | mended by |
|---|---|---|
| a run that says it is under way, without an execution | the execution failed, was stopped, or never began | its end |
| an execution whose run has ended, or is not there | it was ended by hand, or its row was deleted | stopping it |
| a slot or a place in line of a run that has ended or is suspended | whoever did that died too early | giving it back |
| a run that may go on and was not told | whoever gave a slot back died | telling it |
| a checkpoint, a secret of a run that has ended | the same | deleting it |

A healthy system gives it nothing to do. Everything that was found is looked at again before it is touched, and nothing
that changed a moment ago is: somebody may be at it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from sandpiper.errors import NotFound
from sandpiper.logic.artifacts import RUNS_FOLDER, checkpoint_prefix
from sandpiper.logic.ids import RUN_ID
from sandpiper.logic.outcomes import Ending
from sandpiper.models.run import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sandpiper.logic.workflow_steps import Steps
    from sandpiper.models.run import Run
    from sandpiper.ports import Inventory, RunHead

# A run is created, then its execution; it ends, then its slot is handed on: a sweep in between must not interfere.
GRACE = timedelta(minutes=10)
# Each is a request to the bucket: what a run leaves when it ends is looked for by some sweeps, not by all that follow.
LOOK_BACK = timedelta(hours=2)


@dataclass(frozen=True)
class Mended:
    """Ids of runs, by what was wrong with them."""

    runs: list[str] = field(default_factory=list)
    executions: list[str] = field(default_factory=list)
    slots: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    checkpoints: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)

    @property
    def leftovers(self) -> int:
        return sum(len(found) for name, found in asdict(self).items() if name != "runs")


def _is_quiet(head: RunHead, before: datetime) -> bool:
    """A sandbox's clock may be wrong: a time that is still to come tells nothing."""
    return not before <= head.updated_at <= before + 2 * GRACE


@dataclass(frozen=True)
class Reconciler:
    steps: Steps

    def execution_ended(self, run_id: str, status: str, cause: str) -> Mended:
        """The run of an execution that ended badly, if it had to be ended here. Other executions are not ours."""
        if not RUN_ID.fullmatch(run_id):
            return Mended()
        try:
            return Mended(runs=self._finalize(run_id, Ending(error=status, cause=cause)))
        except NotFound:
            return Mended()

    def sweep(self) -> Mended:
        seen, before = self.steps.runs.inventory(), self.steps.clock.now() - GRACE
        executions = self.steps.workflow.running()
        return Mended(
            runs=self._end_runs(seen, before, executions.keys()),
            executions=self._stop_executions(name for name, at in executions.items() if at < before),
            slots=self._give_back_slots(seen, before),
            calls=self._call_again(seen, before),
            checkpoints=self._delete_checkpoints(seen, before),
            secrets=self._delete_secrets(seen, before),
        )

    def _end_runs(self, seen: Inventory, before: datetime, executions: Iterable[str]) -> list[str]:
        live = [head for head in seen.runs.values() if head.status not in TERMINAL and _is_quiet(head, before)]
        known = frozenset(executions)
        lost = [head.run_id for head in live if head.run_id not in known]
        ending = Ending(error="ExecutionMissing", cause="no execution was running for this run")
        ended = [self._finalize(run_id, ending) for run_id in lost if not self.steps.workflow.is_running(run_id)]
        return [run_id for found in ended for run_id in found]

    def _stop_executions(self, names: Iterable[str]) -> list[str]:
        ours = [name for name in names if RUN_ID.fullmatch(name)]
        over = [name for name in ours if self._is_over(name) and self.steps.workflow.is_running(name)]
        for name in over:
            self.steps.workflow.stop(name, "its run has ended, or is not there")
            self.steps.sandboxes.stop_all(name, "its run has ended, or is not there")
        return over

    def _give_back_slots(self, seen: Inventory, before: datetime) -> list[str]:
        held = [(scope, run_id) for scope, runs in seen.slots.items() for run_id in runs]
        useless = [(scope, run_id) for scope, run_id in held if self._needs_no_slot(seen, run_id, before)]
        for scope, run_id in useless:
            self.steps.line.move_up(scope, leaving=run_id)
        return sorted({run_id for _, run_id in useless})

    def _needs_no_slot(self, seen: Inventory, run_id: str, before: datetime) -> bool:
        head = seen.runs.get(run_id)
        if head and (head.updated_at >= before or (head.status not in TERMINAL and head.status != "suspended")):
            return False
        run = self._run(run_id)
        return run is None or run.is_terminal or (run.status == "suspended" and run.updated_at < before)

    def _call_again(self, seen: Inventory, before: datetime) -> list[str]:
        """Those who have been in line for long although they may go on; who knows it already is not woken twice."""
        queued = {head.run_id for head in seen.runs.values() if head.status == "queued" and head.updated_at < before}
        lines = [scope for scope, runs in seen.slots.items() if runs & queued]
        return [run_id for scope in lines for run_id in self.steps.line.move_up(scope)]

    def _delete_checkpoints(self, seen: Inventory, before: datetime) -> list[str]:
        ended = [
            head.run_id
            for head in seen.runs.values()
            if head.status in TERMINAL and before - LOOK_BACK < head.updated_at < before
        ]
        folders = (name for name in self.steps.blobs.folders(RUNS_FOLDER) if name not in seen.runs)
        unknown = [name for name in folders if RUN_ID.fullmatch(name) and self._run(name) is None]
        return [run_id for run_id in (*ended, *unknown) if self.steps.blobs.delete_prefix(checkpoint_prefix(run_id))]

    def _delete_secrets(self, seen: Inventory, before: datetime) -> list[str]:
        heads = {run_id: seen.runs.get(run_id) for run_id in seen.secrets}
        over = [run_id for run_id, head in heads.items() if head is None or head.updated_at < before]
        useless = [run_id for run_id in over if self._is_over(run_id)]
        for run_id in useless:
            self.steps.secrets.delete(run_id)
        return useless

    def _is_over(self, run_id: str) -> bool:
        run = self._run(run_id)
        return run is None or (run.is_terminal and run.updated_at < self.steps.clock.now() - GRACE)

    def _run(self, run_id: str) -> Run | None:
        try:
            return self.steps.runs.get(run_id)
        except NotFound:
            return None

    def _finalize(self, run_id: str, ending: Ending) -> list[str]:
        finalized = self.steps.finalize(run_id, ending)
        return [finalized.run.run_id] if finalized.just_now else []
