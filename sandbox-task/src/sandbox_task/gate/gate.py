"""The quality gate: runs the checks on the work, and tells what this work broke from what was broken before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import Field

from sandbox_task.gate.execution import Execution
from sandbox_task.gate.verdict import conclude, is_of_this_work, judge, shown, shown_tests
from sandpiper.models.base import Model
from sandpiper.models.run import CheckResult, GateReport, SuiteResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.agent.ports import Sink
    from sandbox_task.gate.checks import Selection
    from sandbox_task.isolation.wall import Wall
    from sandbox_task.options import Check
    from sandbox_task.stopping import Stop
    from sandbox_task.workspace.repository import Repository
    from sandpiper.models.spec import GateMode


class GateState(Model):
    """How checks ended on the base, by command: what a run that goes on in another sandbox need not find out again."""

    baseline: dict[str, CheckResult] = Field(default_factory=dict)


@dataclass
class Gate:
    wall: Wall
    repository: Repository
    sink: Sink
    stop: Stop
    mode: GateMode = "regression"
    known: GateState = field(default_factory=GateState)
    _warned: set[str] = field(default_factory=set)

    def baseline(self, selection: Selection) -> None:
        """Before the work: how the checks end on the base's files, which are there again afterwards."""
        unknown = [check for check in selection.checks if check.run not in self.known.baseline]
        if self.repository.base_commit is None or not unknown:
            return
        try:
            for check in unknown:
                self._run_on_base(check)
        finally:
            self._settle(self.repository.start_tree)

    def run(self, selection: Selection, tree: str) -> GateReport:
        """`tree` is what the workspace holds; after a red gate it holds nothing but that again, for the repair."""
        if not self._select(selection):
            return self.skip("There is nothing to check this work with: no checks are declared, planned or found.")
        report = conclude([self._check(check, tree) for check in selection.checks], self.mode)
        if report.status == "failed":
            self._settle(tree)
        self.sink.emit("gate_completed", **report.model_dump(mode="json", include={"status", "summary", "mode"}))
        return report

    def skip(self, reason: str) -> GateReport:
        self.sink.emit("gate_skipped", reason=reason)
        return GateReport(status="skipped", summary=reason, mode=self.mode)

    def suites(self, selection: Selection) -> tuple[SuiteResult, ...]:
        """Every suite, run here and now; nothing is compared and nothing is anybody's word."""
        if not self._select(selection):
            self.skip("There is no test suite to run: none is declared, planned or found.")
            return ()
        return tuple(_suite(self._execute(check, lambda result: result)) for check in selection.checks)

    def broken_before(self) -> list[CheckResult]:
        """The checks that failed before the work, as far as they were run."""
        return [result for result in self.known.baseline.values() if result.status == "failed"]

    def state(self) -> GateState:
        return self.known

    def _select(self, selection: Selection) -> bool:
        for reason in set(selection.refused) - self._warned:
            self.sink.emit("warning", message=reason)
        self._warned |= set(selection.refused)
        if selection.checks:
            commands = [check.run for check in selection.checks]
            self.sink.emit("gate_checks_selected", source=selection.source, checks=commands, mode=self.mode)
        return bool(selection.checks)

    def _check(self, check: Check, tree: str) -> CheckResult:
        return self._execute(check, lambda result: judge(result, self._before(check, tree), self.mode))

    def _execute(self, check: Check, judged: Callable[[CheckResult], CheckResult]) -> CheckResult:
        self.sink.emit("gate_check_started", name=check.name, command=check.run)
        result = Execution(self.wall, self.sink, self.stop).run(check, f"check:{check.name}")
        if result.status == "failed":
            result = judged(result)
        told = shown(result).model_dump(mode="json")
        match result.status:
            case "passed":
                self.sink.emit("gate_check_passed", **told)
            case "failed":
                self.sink.emit("gate_check_failed", **told)
            case "known_broken":
                self.sink.emit("gate_check_known_broken", **told)
        return result

    def _before(self, check: Check, tree: str) -> CheckResult | None:
        """How a check that fails now ended on the base; what is installed stays in place for it."""
        if self.repository.base_commit is None or self._is_new(check, tree):
            return None
        if check.run not in self.known.baseline:
            try:
                self._settle(self.repository.start_tree)
                self._run_on_base(check)
            finally:
                self._settle(tree)
        return self.known.baseline[check.run]

    def _is_new(self, check: Check, tree: str) -> bool:
        changes = self.repository.changes(self.repository.base_tree, tree)
        added = [change.path for change in changes if change.status == "A"]
        return bool(added) and is_of_this_work(check.run, added, self.repository.paths(self.repository.base_tree))

    def _run_on_base(self, check: Check) -> None:
        result = Execution(self.wall, self.sink, self.stop).run(check, f"baseline:{check.name}")
        self.sink.emit("gate_baseline_completed", **shown(result).model_dump(mode="json"))
        kept = result.model_copy(update={"output_tail": ""})
        self.known = GateState(baseline={**self.known.baseline, check.run: kept})

    def _settle(self, wanted: str) -> None:
        """The workspace as `wanted` has it, whatever checks left or changed; what git ignores stays."""
        self.wall.end_all()
        present = self.repository.take_tree(self.wall)
        if present != wanted:
            self.repository.restore(self.wall, present=present, wanted=wanted)


def _suite(result: CheckResult) -> SuiteResult:
    return SuiteResult(
        name=result.name,
        command=result.command,
        status="passed" if result.status == "passed" else "timed_out" if result.timed_out else "failed",
        exit_code=result.exit_code,
        duration_ms=result.duration_ms,
        tests=shown_tests(result.tests),
        output_tail=result.output_tail,
    )
