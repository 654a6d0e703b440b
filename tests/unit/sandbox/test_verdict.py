"""What the results of checks mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_task.gate.repair import failures
from sandbox_task.gate.verdict import conclude, is_of_this_work, judge, shown
from sandpiper import limits
from sandpiper.models.run import CheckResult, CheckStatus, ReportedTests

if TYPE_CHECKING:
    from sandpiper.models.spec import GateMode


def result(status: CheckStatus = "failed", *failing: str, exit_code: int = 1, tests: bool = True) -> CheckResult:
    report = ReportedTests(failed=len(failing), failing=failing) if tests else None
    return CheckResult(command="c", status=status, exit_code=exit_code, tests=report)


def silent(exit_code: int = 1) -> CheckResult:
    return result("failed", exit_code=exit_code, tests=False)


@pytest.mark.parametrize(
    ("before", "now", "status", "newly"),
    [
        (None, result("failed", "a"), "failed", ("a",)),
        (result("passed"), result("failed", "a"), "failed", ("a",)),
        (result("failed", "a"), result("failed", "a"), "known_broken", ()),
        (result("failed", "a", "b"), result("failed", "b"), "known_broken", ()),
        (result("failed", "a"), result("failed", "a", "b"), "failed", ("b",)),
        (result("failed", "a"), result("failed", "b"), "failed", ("b",)),
        (result("failed"), result("failed", "a"), "failed", ("a",)),
        (silent(), silent(), "known_broken", ()),
        (silent(), result("failed", "a"), "known_broken", ()),
        (result("failed", "a"), silent(), "failed", ()),
        (silent(127), silent(127), "known_broken", ()),
        (silent(127), silent(1), "failed", ()),
    ],
)
def test_a_check_is_known_broken_only_if_nothing_fails_that_did_not_before(
    before: CheckResult | None, now: CheckResult, status: str, newly: tuple[str, ...]
) -> None:
    judged = judge(now, before, "regression")
    assert (judged.status, judged.newly_failing) == (status, newly)


def test_more_failures_than_before_count_even_without_names() -> None:
    before, now = (result().model_copy(update={"tests": ReportedTests(failed=count)}) for count in (1, 2))
    assert judge(now, before, "regression").status == "failed"
    assert judge(now, now, "regression").status == "known_broken"


def test_in_strict_mode_nothing_is_excused_but_what_is_new_is_still_told() -> None:
    judged = judge(result("failed", "a", "b"), result("failed", "a"), "strict")
    assert (judged.status, judged.newly_failing) == ("failed", ("b",))


@pytest.mark.parametrize(
    ("mode", "statuses", "status"),
    [
        ("regression", ["passed"], "passed"),
        ("regression", ["passed", "known_broken"], "passed"),
        ("regression", ["passed", "failed"], "failed"),
        ("regression", ["known_broken", "failed"], "failed"),
        ("regression", ["known_broken"], "skipped"),
        ("strict", ["passed", "failed"], "failed"),
        ("informational", ["passed", "passed"], "passed"),
        ("informational", ["passed", "failed"], "skipped"),
        ("informational", ["passed", "known_broken"], "skipped"),
        ("informational", ["failed"], "skipped"),
    ],
)
def test_the_gate_passes_only_by_a_check_that_passed(mode: GateMode, statuses: list[CheckStatus], status: str) -> None:
    report = conclude([result(status_) for status_ in statuses], mode)
    assert (report.status, report.mode) == (status, mode)


ADDED = ["tests/test_new.py", "new.sh", "docs/a.py", "test/x"]
BASE = ["tests/test_old.py", "Makefile"]


@pytest.mark.parametrize(
    "command",
    [
        "pytest tests/test_new.py::test_a",
        "sh ./new.sh",
        "cd tests && pytest test_new.py",
        "python3 -m unittest tests.test_new",
        "pytest docs/",
    ],
)
def test_a_check_that_names_a_new_file_has_nothing_to_be_compared_with(command: str) -> None:
    assert is_of_this_work(command, ADDED, BASE)


@pytest.mark.parametrize("command", ["pytest tests/test_old.py", "make test", "go test ./...", "pytest -q"])
def test_a_check_that_names_nothing_new_is_compared(command: str) -> None:
    assert not is_of_this_work(command, ADDED, BASE)


def test_what_is_shown_has_a_bounded_number_of_names_and_the_full_count() -> None:
    names = [f"t{n}" for n in range(limits.SHOWN_FAILING_TESTS + 5)]
    told = shown(judge(result("failed", *names), None, "regression"))
    assert told.tests is not None
    assert (told.tests.failed, len(told.tests.failing)) == (len(names), limits.SHOWN_FAILING_TESTS)
    assert len(told.newly_failing) == limits.SHOWN_FAILING_TESTS


def test_the_repair_is_told_commands_endings_new_failures_and_output() -> None:
    checks = [
        result("passed"),
        judge(result("failed", "a", "b"), result("failed", "a"), "regression").model_copy(update={"output_tail": "oh"}),
        CheckResult(command="slow", status="failed", timed_out=True, output_tail="…"),
    ]
    assert failures(checks) == (
        "`c` (exit code 1):\nTests that fail now and did not before:\n- b\noh\n\n`slow` (timed out):\n…"
    )
