"""TAP, and what node's own runner and mocha print."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox_task.gate.reports.common import counts, plain, reported

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandpiper.models.run import ReportedTests

_TAP = re.compile(r"^(?:TAP version \d+|\d+\.\.\d+(?: #.*)?)$", re.MULTILINE)
_TAP_RESULT = re.compile(r"( *)(not )?ok(?: \d+)?(?: +-)?(?: +(.*?))?( # *(?:SKIP|TODO)\b.*)?$", re.IGNORECASE)
_SPEC = re.compile(r"^ℹ tests \d+$", re.MULTILINE)
_SPEC_RESULT = re.compile(r"( *)([✔✖﹣]) (.*?) \([\d.]+ms\)( # .*)?$")
_MOCHA = re.compile(r"^ {2}(\d+) (passing|failing|pending)\b", re.MULTILINE)
_MOCHA_FAILURE = re.compile(r"^ {2}\d+\) (.+(?:\n {5,}\S.*?){0,20}?):\n", re.MULTILINE)


@dataclass
class _Tree:
    """Results come from the innermost outwards: one that has parts is known by its parts."""

    open: list[tuple[int, str, str]] = field(default_factory=list)  # depth, name, outcome

    def add(self, depth: int, name: str, outcome: str) -> None:
        parts = []
        while self.open and self.open[-1][0] > depth:
            parts.append(self.open.pop())
        inner = [(depth, f"{name} › {part}", result) for _, part, result in reversed(parts)]
        self.open += inner or [(depth, name, outcome)]

    def told(self) -> ReportedTests:
        outcomes = [outcome for _, _, outcome in self.open]
        return reported(
            passed=outcomes.count("passed"),
            failed=outcomes.count("failed"),
            skipped=outcomes.count("skipped"),
            failing=(name for _, name, outcome in self.open if outcome == "failed"),
        )


def tap(text: str) -> ReportedTests | None:
    text = plain(text)
    if not _TAP.search(text):
        return None
    tree = _Tree()
    for line in text.splitlines():
        if match := _TAP_RESULT.match(line):
            spaces, is_not, name, excuse = match.groups()
            tree.add(len(spaces), name or "", "skipped" if excuse else "failed" if is_not else "passed")
    return tree.told() if tree.open else None


def node_text(text: str) -> ReportedTests | None:
    """The runner of `node --test`, which repeats its failures after the totals."""
    text = plain(text)
    if not (totals := _SPEC.search(text)):
        return None
    tree = _Tree()
    for line in text[: totals.start()].splitlines():
        if match := _SPEC_RESULT.match(line):
            spaces, mark, name, excuse = match.groups()
            tree.add(len(spaces), name, "skipped" if excuse or mark == "﹣" else "failed" if mark == "✖" else "passed")
    return tree.told()


def mocha_text(text: str) -> ReportedTests | None:
    text = plain(text)
    found = counts(text, _MOCHA)
    if "passing" not in found:
        return None
    after = text[next(_MOCHA.finditer(text)).start() :]
    return reported(
        passed=found["passing"],
        failed=found.get("failing", 0),
        skipped=found.get("pending", 0),
        failing=_titles(_MOCHA_FAILURE.findall(after)),
    )


def _titles(blocks: Iterable[str]) -> Iterable[str]:
    return (" › ".join(line.strip() for line in block.splitlines()) for block in blocks)
