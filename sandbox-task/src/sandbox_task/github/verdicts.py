"""What a review or a test run says about a commit in one line, for GitHub's list of checks. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox_task.github.review_text import SERIOUS
from sandpiper import limits
from sandpiper.adapters.github.checks import Verdict
from sandpiper.logic.github.markdown import line, prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox_task.github.review_text import ReviewMode
    from sandpiper.models.run import Finding, SuiteResult

REVIEW, TEST = "sandpiper/review", "sandpiper/test"


def of_review(findings: Sequence[Finding], summary: str, mode: ReviewMode, *, url: str | None) -> Verdict:
    """Remarks are advice, unless the repository wants serious ones to stand in the way."""
    serious = sum(finding.severity in SERIOUS for finding in findings)
    title = f"{len(findings)} remarks, {serious} of them serious" if findings else "No remarks"
    against = "failure" if mode == "request_changes" else "neutral"
    return Verdict(
        name=REVIEW,
        conclusion=against if serious else "success",
        title=title,
        summary=prose(summary, limits.STATUS_PROSE_CHARS) or title,
        url=url,
    )


def of_suites(suites: Sequence[SuiteResult], summary: str, *, url: str | None) -> Verdict:
    failed = [suite for suite in suites if suite.status != "passed"]
    title = f"{len(failed)} of {len(suites)} suites failed" if failed else f"{len(suites)} suites passed"
    rows = [f"| `{line(suite.command, 120)}` | {suite.status} | {_counts(suite)} |" for suite in suites]
    table = "\n".join(["| suite | result | tests |", "|---|---|---|", *rows]) if rows else ""
    return Verdict(
        name=TEST,
        conclusion="failure" if failed else "success" if suites else "neutral",
        title=title if suites else "There was no suite to run",
        summary="\n\n".join(filter(None, (table, prose(summary, limits.STATUS_PROSE_CHARS)))) or title,
        url=url,
    )


def _counts(suite: SuiteResult) -> str:
    tests = suite.tests
    if tests is None:
        return ""
    failing = f": {line(', '.join(tests.failing[:10]), limits.STATUS_PROSE_CHARS)}" if tests.failing else ""
    return f"{tests.passed} passed, {tests.failed} failed{failing}"
