"""What pytest and unittest print."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox_task.gate.reports.common import counts, plain, reported

if TYPE_CHECKING:
    from sandpiper.models.run import ReportedTests

_PYTEST_TOTAL = re.compile(r"^(?:=+ )?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s(?: \([\d:]+\))?(?: =+)?$", re.MULTILINE)
_PYTEST_COUNT = re.compile(r"(\d+) (failed|passed|skipped|error|errors|xfailed|xpassed)\b")
_PYTEST_FAILURE = re.compile(r"^(?:FAILED|ERROR) ([^\s\[:][^\[\n]*?(?:\[.*?\])?)(?: - .*)?$", re.MULTILINE)
_UNITTEST_TOTAL = re.compile(r"^Ran (\d+) tests? in [\d.]+s\n+(OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$", re.MULTILINE)
_UNITTEST_COUNT = re.compile(r"(failures|errors|skipped)=(\d+)")
_UNITTEST_FAILURE = re.compile(r"^(?:FAIL|ERROR): (\S+) \((\S+?)\)((?: [\[(].*)?)$", re.MULTILINE)
_FIXTURES = ("setUpClass", "tearDownClass", "setUpModule", "tearDownModule")


def pytest_text(text: str) -> ReportedTests | None:
    text = plain(text)
    if not (totals := _PYTEST_TOTAL.findall(text)):
        return None
    found = counts("\n".join(totals), _PYTEST_COUNT)
    return reported(
        passed=found.get("passed", 0) + found.get("xpassed", 0),
        failed=sum(found.get(word, 0) for word in ("failed", "error", "errors")),
        skipped=found.get("skipped", 0) + found.get("xfailed", 0),
        failing=_PYTEST_FAILURE.findall(text),
    )


def unittest_text(text: str) -> ReportedTests | None:
    text = plain(text)
    if not (totals := _UNITTEST_TOTAL.findall(text)):
        return None
    ran = sum(int(number) for number, _, _ in totals)
    found = {word: int(number) for word, number in _UNITTEST_COUNT.findall(" ".join(notes for _, _, notes in totals))}
    failures = _UNITTEST_FAILURE.findall(text)
    tests = {(test, place) for test, place, _ in failures if test not in _FIXTURES}  # parts of a test are no tests
    return reported(
        passed=ran - len(tests) - found.get("skipped", 0),
        failed=found.get("failures", 0) + found.get("errors", 0),
        skipped=found.get("skipped", 0),
        failing=[_unittest_name(*failure) for failure in failures],
    )


def _unittest_name(test: str, place: str, detail: str) -> str:
    """`tests.test_a.T.test_b`, whether this Python names the method in the brackets or not."""
    if place.startswith("unittest.loader._FailedTest"):
        return test
    whole = place if place.endswith(f".{test}") else f"{place}.{test}"
    return f"{whole}{detail}"
