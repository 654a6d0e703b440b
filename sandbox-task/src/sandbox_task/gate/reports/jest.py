"""Jest and vitest: their JSON report, which is the same, and what they print."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from sandbox_task.gate.reports.common import counts, plain, reported
from sandpiper.models.base import Model

if TYPE_CHECKING:
    from sandpiper.models.run import ReportedTests

_COUNT = re.compile(r"(\d+) (failed|passed|skipped|todo)")
_JEST_TOTAL = re.compile(r"^Tests: +(.*\btotal)$", re.MULTILINE)
_JEST_FILE = re.compile(r"FAIL (?:.* )?(\S+\.\w+)(?: \([\d.]+ m?s\))?$")
_JEST_FAILURE = re.compile(r"  ● (.+)$")
_VITEST_TOTAL = re.compile(r"^ +Tests +(.*\(\d+\))$", re.MULTILINE)
_VITEST_FAILURE = re.compile(r"^ FAIL +(?:\|\S+\| +)?(.+?)(?: \[ .* \])?$", re.MULTILINE)
_SEPARATOR = " › "
_BROKEN = "Test suite failed to run"


class _Assertion(Model, extra="ignore"):
    status: str
    title: str = ""
    above: tuple[str, ...] = Field(default=(), alias="ancestorTitles")


class _Suite(Model, extra="ignore"):
    name: str
    status: str = ""
    assertions: tuple[_Assertion, ...] = Field(default=(), alias="assertionResults")


class _Report(Model, extra="ignore"):
    suites: tuple[_Suite, ...] = Field(alias="testResults")


def jest_json(data: bytes, root: str) -> ReportedTests | None:
    """`root`: the directory that the names of files are made relative to."""
    try:
        report = _Report.model_validate(json.loads(data))
    except (ValueError, ValidationError, RecursionError):
        return None
    statuses = [case.status for suite in report.suites for case in suite.assertions]
    return reported(
        passed=statuses.count("passed"),
        skipped=len(statuses) - statuses.count("passed") - statuses.count("failed"),
        failing=(name for suite in report.suites for name in _failing(suite, root)),
    )


def jest_text(text: str) -> ReportedTests | None:
    text = plain(text)
    if not (totals := _JEST_TOTAL.findall(text)):
        return None
    failing, file = [], ""
    for line in text.splitlines():
        if match := _JEST_FILE.match(line):
            file = match[1].removeprefix("./")
        elif match := _JEST_FAILURE.match(line):
            failing.append(file if match[1] == _BROKEN else _SEPARATOR.join(filter(None, (file, match[1]))))
    return _told(totals, failing)


def vitest_text(text: str) -> ReportedTests | None:
    text = plain(text)
    if not (totals := _VITEST_TOTAL.findall(text)):
        return None
    return _told(totals, [match.replace(" > ", _SEPARATOR) for match in _VITEST_FAILURE.findall(text)])


def _told(totals: list[str], failing: list[str]) -> ReportedTests:
    found = counts("\n".join(totals), _COUNT)
    return reported(
        passed=found.get("passed", 0),
        failed=found.get("failed", 0),
        skipped=found.get("skipped", 0) + found.get("todo", 0),
        failing=failing,
    )


def _failing(suite: _Suite, root: str) -> list[str]:
    path = PurePosixPath(suite.name)
    file = str(path.relative_to(root) if path.is_relative_to(root) else path)
    cases = [case for case in suite.assertions if case.status == "failed"]
    if suite.status == "failed" and not cases:
        return [file]
    return [_SEPARATOR.join((file, *case.above, case.title)) for case in cases]
