"""JUnit XML, which nearly every test runner can write. It comes from behind the wall: nothing in it is trusted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from xml.parsers import expat

from sandbox_task.gate.reports.common import reported

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandpiper.models.run import ReportedTests

_OUTCOMES = {"failure": "failed", "error": "failed", "skipped": "skipped"}


class _Refused(Exception):
    """A document type declares entities, and no test report needs one."""


@dataclass
class _Reader:
    """Follows the elements as they come, so that nesting costs nothing."""

    root: str | None = None
    suites: list[str] = field(default_factory=list)
    name: str | None = None
    outcome: str = "passed"
    cases: list[tuple[str, str]] = field(default_factory=list)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.root = self.root or tag
        match tag:
            case "testsuite":
                self.suites.append(attributes.get("name", ""))
            case "testcase":
                self.name, self.outcome = _identifier(attributes, self.suites), "passed"
            case "failure" | "error" | "skipped" if self.name is not None and self.outcome != "failed":
                self.outcome = _OUTCOMES[tag]

    def end(self, tag: str) -> None:
        if tag == "testsuite":
            self.suites.pop()
        if tag == "testcase" and self.name is not None:
            self.cases.append((self.name, self.outcome))
            self.name = None


def junit(data: bytes) -> ReportedTests | None:
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(data, True)  # noqa: FBT003 - expat takes no keywords
    except (expat.ExpatError, _Refused, LookupError, ValueError):  # an encoding that Python does not know, too
        return None
    if reader.root not in ("testsuites", "testsuite"):
        return None
    outcomes = [outcome for _, outcome in reader.cases]
    return reported(
        passed=outcomes.count("passed"),
        failed=outcomes.count("failed"),
        skipped=outcomes.count("skipped"),
        failing=(name for name, outcome in reader.cases if outcome == "failed"),
    )


def _refuse(*_: object) -> None:
    raise _Refused


def _identifier(attributes: Mapping[str, str], suites: list[str]) -> str:
    """As the runner itself would name it, where that can be told: `tests/test_a.py::TestA::test_b`."""
    name, owner, file = (attributes.get(key, "") for key in ("name", "classname", "file"))
    if file.endswith(".py"):
        module = ".".join(PurePosixPath(file).with_suffix("").parts)
        inner = owner.removeprefix(module).strip(".").split(".")
        own = "" if name == module else name
        return "::".join(part for part in (file, *inner, own) if part)
    outer = [suite for suite in suites if suite and suite != owner] if owner in ("", "test") else [owner]
    return "::".join(part for part in (*outer, name) if part)
