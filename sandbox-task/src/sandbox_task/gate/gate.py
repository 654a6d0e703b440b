"""The quality gate: runs the checks on the work, and tells what this work broke from what was broken before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox_task.output import HeadAndTail
from sandpiper import limits
from sandpiper.models.run import CheckResult, GateReport, GateStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sandbox_task.agent.ports import Sink
    from sandbox_task.gate.checks import Selection
    from sandbox_task.isolation.wall import Wall
    from sandbox_task.options import Check
    from sandbox_task.stopping import Stop
    from sandbox_task.workspace.repository import Repository


@dataclass
class Gate:
    wall: Wall
    repository: Repository
    sink: Sink
    stop: Stop
    _broken_before: dict[str, bool] = field(default_factory=dict)

    def run(self, selection: Selection, tree: str) -> GateReport:
        """`tree` is what the workspace holds, and holds again afterwards."""
        if not selection.checks:
            return self.skip("There is nothing to check this work with: no checks are declared, planned or found.")
        commands = [check.run for check in selection.checks]
        self.sink.emit("gate_checks_selected", source=selection.source, checks=commands)
        report = _report([self._check(check, tree) for check in selection.checks])
        self.sink.emit("gate_completed", **report.model_dump(mode="json", include={"status", "summary"}))
        return report

    def skip(self, reason: str) -> GateReport:
        self.sink.emit("gate_skipped", reason=reason)
        return GateReport(status="skipped", summary=reason)

    def _check(self, check: Check, tree: str) -> CheckResult:
        self.sink.emit("gate_check_started", name=check.name, command=check.run)
        result = self._execute(check, {"tool_id": f"check:{check.name}"})
        if result.status == "failed" and self._failed_before(check, tree):
            result = result.model_copy(update={"status": "known_broken"})
        told = result.model_dump(mode="json")
        match result.status:
            case "passed":
                self.sink.emit("gate_check_passed", **told)
            case "failed":
                self.sink.emit("gate_check_failed", **told)
            case "known_broken":
                self.sink.emit("gate_check_known_broken", **told)
        return result

    def _failed_before(self, check: Check, tree: str) -> bool:
        """Asked only about a check that fails now: run it on the base's files, with what is installed left in place."""
        if self.repository.base_commit is None:
            return False
        if check.run not in self._broken_before:
            base = self.repository.base_tree
            self.repository.restore(self.wall, present=tree, wanted=base)
            before = self._execute(check, {"tool_id": f"baseline:{check.name}"})
            self.wall.end_all()
            self.repository.restore(self.wall, present=base, wanted=tree)
            self._broken_before[check.run] = before.status == "failed"
            self.sink.emit("gate_baseline_completed", **before.model_dump(mode="json"))
        return self._broken_before[check.run]

    def _execute(self, check: Check, labels: dict[str, str]) -> CheckResult:
        self.stop.check()
        tail = HeadAndTail(0, limits.CHECK_TAIL_CHARS)
        with self.sink.output(**labels) as output:
            completed = self.wall.run(check.run, timeout=limits.CHECK_SECONDS, on_output=_both(output.feed, tail))
        self.stop.check()
        return CheckResult(
            name=check.name,
            command=check.run,
            status="passed" if completed.succeeded else "failed",
            exit_code=completed.exit_code,
            duration_ms=completed.duration_ms,
            output_tail=tail.rest()[1],
        )


def _both(feed: Callable[[bytes], None], tail: HeadAndTail) -> Callable[[bytes], None]:
    def on_output(data: bytes) -> None:
        feed(data)
        tail.add(data.decode(errors="replace"))

    return on_output


def _report(checks: Sequence[CheckResult]) -> GateReport:
    """Passed needs a check that passed: what was broken before and still is proves nothing."""
    counts = {
        status: sum(check.status == status for check in checks) for status in ("passed", "failed", "known_broken")
    }
    status: GateStatus = "failed" if counts["failed"] else "passed" if counts["passed"] else "skipped"
    named = {"passed": "passed", "failed": "failed", "known_broken": "known broken"}
    summary = ", ".join(f"{count} {named[name]}" for name, count in counts.items() if count)
    return GateReport(
        status=status,
        summary=f"{len(checks)} {'check' if len(checks) == 1 else 'checks'}: {summary}",
        checks=tuple(checks),
    )
