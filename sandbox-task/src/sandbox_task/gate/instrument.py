"""Asks a test runner for its report, where a command is plainly a call of one. Its exit code and tests stay the same.

pytest is asked for the family `xunit1`: it names the file of each test, and with `xunit2` a test that records a
property would be warned, which fails it where warnings are errors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

Format = Literal["junit", "jest", "go"]

_BEFORE = r"(?:cd [\w./-]+\s*&&\s*)?(?:[A-Za-z_]\w*=[^\s'\"`$;&|<>]*\s+)*"
_REST = r"((?:\s(?:2>&1|[^;&|<>`\n])*)?)"  # one command: nothing is joined to it, sent elsewhere or read from elsewhere
_PYTHON_RUNNERS = r"(?:(?:uv run|poetry run|pdm run|pipenv run|hatch run|rye run)\s+)?"
_NODE_RUNNERS = r"(?:(?:cross-env(?:\s+\w+=\S+)+|npx(?:\s+--?[\w-]+)*|yarn(?: run| exec)?|pnpm(?: exec)?|bunx)\s+)*"
_NODE_BIN = r"(?:node(?:\s+--[\w-]+)*\s+)?(?:(?:\./)?node_modules/(?:\.bin|\w+/bin)/)?"


@dataclass(frozen=True)
class Tool:
    call: re.Pattern[str]
    adds: str
    unless: re.Pattern[str]
    format: Format

    def ask(self, command: str, report: str) -> str | None:
        """The command with what makes it report, or None if it is no plain call, or reports in its own way."""
        match = self.call.fullmatch(command)
        if match is None or self.unless.search(match[2]):
            return None
        return f"{match[1]} {self.adds.format(report=report)}{match[2]}"


@dataclass(frozen=True)
class Asked:
    command: str
    format: Format


def _tool(program: str, adds: str, unless: str, format_: Format) -> Tool:
    return Tool(re.compile(rf"({_BEFORE}{program}){_REST}"), adds, re.compile(rf"(?:^|\s)(?:{unless})"), format_)


_PYTEST = _tool(
    rf"{_PYTHON_RUNNERS}(?:(?:[\w./-]*/)?python[\d.]*(?:\s+-[A-Za-ln-z]\w*)*\s+-m\s+pytest|(?:[\w./-]*/)?(?:pytest|py\.test))",
    "-o junit_family=xunit1 --junitxml={report}",
    r"--junit-?xml|no:junitxml|--co\b|--collect-only|--version|--help|-h\b|--fixtures",
    "junit",
)
_JEST = _tool(
    rf"{_NODE_RUNNERS}{_NODE_BIN}jest(?:\.js)?",
    "--json --outputFile={report}",
    r"--json|--outputFile|--watch|--listTests|--version|--help|--init|--showConfig",
    "jest",
)
_VITEST = _tool(
    rf"{_NODE_RUNNERS}{_NODE_BIN}vitest(?: run)?",
    "--reporter=default --reporter=json --outputFile.json={report}",
    r"--reporter|--outputFile|watch|dev|list|bench|init|--ui|--version|--help",
    "jest",
)
_GO = _tool(r"go test", "-json", r"-json|-bench|-list|-c\b|-fuzz|-n\b", "go")
_DIRECT = (_PYTEST, _JEST, _VITEST, _GO)
_SCRIPT = re.compile(rf"({_BEFORE}(npm|yarn|pnpm)(?: run| run-script)? (test[\w:.-]*|t))")


def instrument(command: str, report: str, script: Callable[[str], str]) -> Asked | None:
    """`report` is where it goes, as the shell may read it; `script` tells what a script of package.json runs."""
    command = command.strip()
    for tool in _DIRECT:
        if asked := tool.ask(command, report):
            return Asked(asked, tool.format)
    match = _SCRIPT.fullmatch(command)
    if match is None or "cd " in match[1]:
        return None
    return _through_script(command, match[2], script("test" if match[3] == "t" else match[3]), report)


def _through_script(command: str, manager: str, script: str, report: str) -> Asked | None:
    """Arguments are handed on to the end of the script, so it must be one plain call."""
    separator = " --" if manager == "npm" else ""
    for tool in (_JEST, _VITEST):
        if tool.ask(script.strip(), report):
            return Asked(f"{command}{separator} {tool.adds.format(report=report)}", tool.format)
    return None
