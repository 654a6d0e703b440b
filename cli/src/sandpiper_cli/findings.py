"""What a run hands back besides a diff: remarks, suites, the story, and which tests its work broke."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper_cli.narrate import Line
from sandpiper_cli.text import neutralise, one_line, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandpiper_cli.client import Json

_WIDE = 200
_TESTS_SHOWN = 20
_STYLE_OF_SEVERITY = {"critical": "bad", "major": "bad", "minor": "warn", "info": "dim"}
_STYLE_OF_VERDICT = {"PASSED": "good", "FAILED": "bad"}


def handed_back(result: Json) -> list[Line]:
    lines = [line for finding in result.get("findings") or () for line in _finding(finding)]
    lines += [line for suite in result.get("suites") or () for line in _suite(suite)]
    return lines + _story(result.get("story"))


def gate_lines(gate: Json | None) -> list[Line]:
    if not gate:
        return []
    style = {"passed": "good", "failed": "bad"}.get(gate["status"], "warn")
    lines = [Line(style, f"Gate    {gate['status']}: {one_line(gate.get('summary', ''), _WIDE)}")]
    for check in gate.get("checks") or ():
        lines += _named_tests("fails now", check.get("newly_failing") or ())
    return lines


def duration_lines(durations: Json) -> list[Line]:
    spent = [f"{one_line(phase, 40)} {seconds(ms / 1000)}" for phase, ms in durations.items()]
    return [Line("plain", f"Time    {', '.join(spent)}")] if spent else []


def _finding(finding: Json) -> list[Line]:
    line = f":{finding['line']}" if finding.get("line") else ""
    style = _STYLE_OF_SEVERITY.get(finding["severity"], "plain")
    first, *more = neutralise(finding["message"]).strip().split("\n")
    lines = [Line(style, f"{one_line(finding['file'], _WIDE)}{line} {finding['severity']} {first}")]
    lines += [Line("words", f"    {text}") for text in more]
    suggestion = neutralise(finding.get("suggestion") or "").strip()
    return lines + [Line("dim", f"    → {text}") for text in suggestion.split("\n") if text]


def _suite(suite: Json) -> list[Line]:
    good = suite["status"] == "passed"
    took = seconds(suite.get("duration_ms", 0) / 1000)
    words = f"{one_line(suite['name'], _WIDE)} {suite['status'].replace('_', ' ')}{_counts(suite.get('tests'))}, {took}"
    lines = [Line("good" if good else "bad", f"Suite   {words}")]
    return lines + _named_tests("fails", (suite.get("tests") or {}).get("failing") or ())


def _counts(tests: Json | None) -> str:
    if not tests:
        return ""
    return f": {tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped"


def _story(story: Json | None) -> list[Line]:
    if not story:
        return []
    style = _STYLE_OF_VERDICT.get(story["verdict"], "warn")
    return [Line(style, f"Story   {one_line(story['id'], 60)} {one_line(story['title'], _WIDE)}: {story['verdict']}")]


def _named_tests(verb: str, names: Sequence[str]) -> list[Line]:
    lines = [Line("bad", f"  ✘ {one_line(name, _WIDE)} {verb}") for name in names[:_TESTS_SHOWN]]
    if hidden := len(names) - _TESTS_SHOWN:
        lines += [Line("dim", f"  … {hidden} more (--json has all)")] if hidden > 0 else []
    return lines
