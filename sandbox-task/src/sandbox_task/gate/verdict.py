"""What results mean: what this work broke, what was broken before, and what the whole gate says."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.models.run import CheckResult, GateReport, GateStatus, ReportedTests

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sandpiper.models.spec import GateMode

_NO_SUCH_COMMAND = (126, 127)
_NAMED = {"passed": "passed", "failed": "failed", "known_broken": "known broken"}
_WORDS = re.compile(r"[^\s'\"=:;|&()<>]+")


def judge(now: CheckResult, before: CheckResult | None, mode: GateMode) -> CheckResult:
    """A check that fails now, given how it ended on the base (None: there was nothing to compare with)."""
    if before is not None and before.exit_code in _NO_SUCH_COMMAND and now.exit_code != before.exit_code:
        before = None  # it could not run then, and now it can
    newly = _newly_failing(now, before)
    is_known = before is not None and before.status == "failed" and not newly and not _is_worse(now, before)
    status = "known_broken" if is_known and mode != "strict" else "failed"
    return now.model_copy(update={"status": status, "newly_failing": newly})


def conclude(checks: Sequence[CheckResult], mode: GateMode) -> GateReport:
    """Passed needs a check that passed: what was broken before and still is proves nothing."""
    counts = {status: sum(check.status == status for check in checks) for status in _NAMED}
    told = ", ".join(f"{count} {_NAMED[name]}" for name, count in counts.items() if count)
    note = "" if mode == "regression" else f" ({mode})"
    return GateReport(
        status=_status(counts, mode),
        summary=f"{len(checks)} {'check' if len(checks) == 1 else 'checks'}: {told}{note}",
        mode=mode,
        checks=tuple(map(shown, checks)),
    )


def shown(check: CheckResult) -> CheckResult:
    """With as many names as an event and a result carry; the numbers say how many there are."""
    newly = check.newly_failing[: limits.SHOWN_FAILING_TESTS]
    return check.model_copy(update={"tests": shown_tests(check.tests), "newly_failing": newly})


def shown_tests(tests: ReportedTests | None) -> ReportedTests | None:
    return tests and tests.model_copy(update={"failing": tests.failing[: limits.SHOWN_FAILING_TESTS]})


def is_of_this_work(command: str, added: Collection[str], base: Collection[str]) -> bool:
    """Whether a command names a file or folder that the base does not have: on the base it could only fail."""
    for word in (word for word in _WORDS.findall(command) if "/" in word or "." in word):
        for name in (posixpath.normpath(word), f"{word.replace('.', '/')}.py"):
            if any(_is_at(path, name) for path in added) and not any(_is_at(path, name) for path in base):
                return True
    return False


def _is_at(path: str, name: str) -> bool:
    return f"/{name}/" in f"/{path}/"


def _newly_failing(now: CheckResult, before: CheckResult | None) -> tuple[str, ...]:
    failing = now.tests.failing if now.tests else ()
    if before is None or before.status == "passed":
        return failing
    if before.tests is None or (before.tests.failed and not before.tests.failing):
        return ()  # nobody said which ones failed then
    known = set(before.tests.failing)
    return tuple(name for name in failing if name not in known)


def _is_worse(now: CheckResult, before: CheckResult) -> bool:
    """More failures than before, or tests that reported before and don't come to it any more."""
    if before.tests is None:
        return False
    return now.tests is None or now.tests.failed > before.tests.failed


def _status(counts: dict[str, int], mode: GateMode) -> GateStatus:
    if mode == "informational":
        return "passed" if counts["passed"] and not counts["failed"] + counts["known_broken"] else "skipped"
    return "failed" if counts["failed"] else "passed" if counts["passed"] else "skipped"
