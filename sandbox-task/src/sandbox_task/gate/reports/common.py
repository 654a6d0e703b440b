"""What all readers of test reports share: one way to put together what they found."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.models.run import ReportedTests

if TYPE_CHECKING:
    from collections.abc import Iterable

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def reported(*, passed: int = 0, failed: int = 0, skipped: int = 0, failing: Iterable[str] = ()) -> ReportedTests:
    """Names as stable identifiers: each once, on one line, bounded. A named failure is also counted."""
    names = dict.fromkeys(" ".join(name.split())[: limits.MAX_TEST_NAME_CHARS] for name in failing)
    return ReportedTests(
        passed=max(0, passed),
        failed=max(failed, len(names)),
        skipped=max(0, skipped),
        failing=tuple(names)[: limits.MAX_FAILING_TESTS],
    )


def merged(parts: Iterable[ReportedTests]) -> ReportedTests | None:
    """Several reports of one command; None if there is none."""
    found = list(parts)
    if not found:
        return None
    return reported(
        passed=sum(part.passed for part in found),
        failed=sum(part.failed for part in found),
        skipped=sum(part.skipped for part in found),
        failing=(name for part in found for name in part.failing),
    )


def plain(text: str) -> str:
    """Without colours, with one kind of line ending, and with no line so long that a pattern could get lost in it."""
    lines = _COLOURS.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line[: limits.MAX_REPORT_LINE_CHARS] for line in lines)


def counts(text: str, pattern: re.Pattern[str]) -> dict[str, int]:
    """`3 failed, 1 passed` as {"failed": 3, "passed": 1}; `pattern` has a number and a word."""
    found: dict[str, int] = {}
    for number, word in pattern.findall(text):
        found[word] = found.get(word, 0) + int(number)
    return found
