"""What is done with the agent's work before anybody else sees it: the gate with its repairs, or a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox_task.agent import prompting
from sandbox_task.gate.checks import Selection, select_checks
from sandbox_task.suspension import Suspended
from sandpiper import limits
from sandpiper.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.agent.tools.planning import UpdatePlan
    from sandbox_task.gate.gate import Gate
    from sandbox_task.inbox import Inbox
    from sandbox_task.isolation.wall import Wall
    from sandbox_task.options import Options
    from sandbox_task.progress import Progress
    from sandbox_task.reporter import Reporter
    from sandbox_task.workspace.repository import Repository
    from sandpiper.models.run import GateReport
    from sandpiper.models.spec import RunSpec


@dataclass(frozen=True)
class Proving:
    """`repair` has the agent work on, with these words, and leaves a new tree in `progress`."""

    spec: RunSpec
    repository: Repository
    settings: Options
    gate: Gate
    wall: Wall
    sink: Reporter
    inbox: Inbox
    planning: UpdatePlan
    progress: Progress
    repair: Callable[[str], object]

    def report(self) -> None:
        """Read-only work ends in words and figures; nothing of the repository may have changed."""
        self._require_untouched()
        if self.spec.type == "test-suite":
            with self.progress.phase("suites"):
                self.progress.suites = self.gate.suites(self._selection())

    def prove(self) -> GateReport:
        """The gate, with repairs; red if it stays so."""
        report = self._check()
        while report.status == "failed" and self.progress.repairs < limits.MAX_REPAIRS:
            self.progress.repairs += 1
            failed = [check for check in report.checks if check.status == "failed"]
            left = limits.MAX_REPAIRS - self.progress.repairs
            self.sink.emit("gate_repair_started", checks=[check.command for check in failed], left=left)
            self.repair(prompting.repair_prompt(failed))
            report = self._check()
        return report

    def _require_untouched(self) -> None:
        repository = self.repository
        changes = repository.changes(repository.start_tree, str(self.progress.tree))
        if touched := [change.path for change in changes if change.status != "A"]:
            raise RunError(
                "agent_loop_error",
                f"This task is read-only, but it changed files of the repository: {', '.join(touched[:10])}",
            )
        if changes:
            left = [change.path for change in changes]
            self.sink.emit("warning", message="Files that the read-only work left behind are dropped.", paths=left[:50])
            repository.restore(self.wall, present=str(self.progress.tree), wanted=repository.start_tree)
            self.progress.tree = repository.start_tree

    def _check(self) -> GateReport:
        tree = str(self.progress.tree)
        if self.inbox.is_paused:
            raise Suspended("paused", "The run was paused before its checks.")
        with self.progress.phase("gate"):
            if tree == self.repository.start_tree:
                report = self.gate.skip("Nothing was changed, so there is nothing to check.")
            else:
                report = self.gate.run(self._selection(), tree)
        self.progress.gate = report
        return report

    def _selection(self) -> Selection:
        return select_checks(self.settings, self.planning.plan, self.repository, str(self.progress.tree))
