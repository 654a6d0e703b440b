"""What `cargo test` prints: one section per binary, and one for the examples in the documentation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox_task.gate.reports.common import counts, plain, reported

if TYPE_CHECKING:
    from sandpiper.models.run import ReportedTests

_TOTAL = re.compile(r"^test result: \w+\. (.*)$", re.MULTILINE)
_COUNT = re.compile(r"(\d+) (passed|failed|ignored)")
_BINARY = re.compile(r" +Running (?:unittests )?(\S+) \((?:.*/)?([\w-]+?)-[0-9a-f]{16}(?:\.exe)?\)$")
_EXAMPLES = re.compile(r" +Doc-tests (\S+)$")
_FAILURE = re.compile(r"(?:test (.+?)(?: - should panic)? \.\.\. FAILED|(.+) --- FAILED)$")
_LINE = re.compile(r" \(line \d+\)")


def cargo_text(text: str) -> ReportedTests | None:
    text = plain(text)
    if not (totals := _TOTAL.findall(text)):
        return None
    failing, place = [], ""
    for line in text.splitlines():
        if match := _BINARY.match(line):
            place = match[1] if match[1].startswith("tests/") else match[2]
        elif match := _EXAMPLES.match(line):
            place = match[1]
        elif match := _FAILURE.match(line):
            failing.append(_name(place, match[1] or match[2]))
    found = counts("\n".join(totals), _COUNT)
    return reported(
        passed=found.get("passed", 0), failed=found.get("failed", 0), skipped=found.get("ignored", 0), failing=failing
    )


def _name(place: str, test: str) -> str:
    """Without the line of an example: it moves with every line that is written above it."""
    return "::".join(filter(None, (place, _LINE.sub("", test))))
