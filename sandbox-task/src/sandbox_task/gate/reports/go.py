"""`go test`: the events of `-json`, and what it prints without."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from sandbox_task.gate.reports.common import plain, reported

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandpiper.models.run import ReportedTests

_ENDINGS = ("pass", "fail", "skip")
_NOISE = re.compile(r"=== (RUN|PAUSE|CONT|NAME) |\s*--- (PASS|SKIP): ")
_PACKAGE = re.compile(r"(ok|FAIL|\?)\s*\t(\S+)(?:\t| \[)")
_TEST = re.compile(r" *--- (PASS|FAIL|SKIP): (\S+)")


def go_json(text: str) -> ReportedTests | None:
    outcomes: dict[tuple[str, str], str] = {}
    for line in text.splitlines():
        event = _event(line)
        if event is not None and event.get("Action") in _ENDINGS:
            outcomes[str(event.get("Package", "")), str(event.get("Test", ""))] = event["Action"]
    outcomes |= {(package, ""): "fail" for package in _unbuilt(text)}
    return _told(outcomes) if outcomes else None


def go_words(line: bytes) -> bytes:
    """What `go test` would have printed of one line of its events."""
    event = _event(line.decode(errors="replace"))
    if event is None:
        return line
    words = str(event.get("Output", ""))
    return b"" if _NOISE.match(words) else words.encode()


def go_text(text: str) -> ReportedTests | None:
    outcomes: dict[tuple[str, str], str] = {}
    tests: list[tuple[str, str]] = []
    for line in plain(text).splitlines():
        if match := _TEST.match(line):
            tests.append((match[2], match[1].lower()))
        elif match := _PACKAGE.match(line):  # comes after its tests
            outcomes |= {(match[2], test): outcome for test, outcome in tests}
            outcomes[match[2], ""] = {"ok": "pass", "FAIL": "fail"}.get(match[1], "skip")
            tests = []
    return _told(outcomes) if outcomes else None


def _event(line: str) -> dict[str, Any] | None:
    if not line.startswith('{"'):
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and "Action" in event else None


def _unbuilt(text: str) -> Iterable[str]:
    """Older versions say in plain words that a package does not build."""
    return re.findall(r"^FAIL\t(\S+) \[(?:build|setup) failed\]", plain(text), re.MULTILINE)


def _told(outcomes: dict[tuple[str, str], str]) -> ReportedTests:
    """A test with parts is known by its parts; a package that failed without a failing test, by itself."""
    tests = {key: outcome for key, outcome in outcomes.items() if key[1]}
    whole = _above(tests)
    ends = [outcome for key, outcome in tests.items() if key not in whole]
    failed = [key for key, outcome in tests.items() if outcome == "fail"]
    above = _above(failed)
    named = [f"{package}.{test}" for package, test in failed if (package, test) not in above]
    broken = {package for (package, test), outcome in outcomes.items() if outcome == "fail" and not test}
    silent = broken - {package for package, _ in failed}
    return reported(passed=ends.count("pass"), skipped=ends.count("skip"), failing=[*named, *sorted(silent)])


def _above(tests: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(package, test.rsplit("/", depth)[0]) for package, test in tests for depth in range(1, test.count("/") + 1)}
