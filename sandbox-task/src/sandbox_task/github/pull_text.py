"""The words of a pull request: what, why, and how it is known to work. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.logic.github.markdown import cut, line, prose

if TYPE_CHECKING:
    from sandpiper.models.run import CheckResult, CommitInfo, GateReport, StoryOutcome
    from sandpiper.models.spec import RunSpec

_RESULTS = {"passed": "✅ passed", "failed": "❌ failed", "known_broken": "⚠️ failed before, too"}
_COMMAND_CHARS = 120
_TASK_CHARS = 2_000
UNVERIFIED = "> ⚠️ **Unverified**: nothing has proven that this works."


def marker(run_id: str) -> str:
    """Hidden in the text: by it a pull request is known to be ours to rewrite."""
    return f"<!-- sandpiper:pull {run_id} -->"


def is_ours(body: str | None) -> bool:
    return "<!-- sandpiper:pull " in (body or "")


def pull_title(commit: CommitInfo) -> str:
    """The commit's subject, which is a conventional one unless the message was given."""
    return cut(commit.message.partition("\n")[0].strip() or "Work of Sandpiper", limits.GITHUB_TITLE_CHARS)


def pull_body(
    spec: RunSpec,
    run_id: str,
    *,
    summary: str,
    gate: GateReport,
    commit: CommitInfo,
    story: StoryOutcome | None,
    link: str | None,
) -> str:
    """What must not be cut stands last, so the rest is cut before."""
    ending = "\n\n".join(filter(None, (_closes(spec), _named(run_id, link), marker(run_id))))
    parts = [
        "" if commit.verified else UNVERIFIED,
        prose(summary, limits.STATUS_PROSE_CHARS),
        f"### Why\n{_why(spec)}",
        f"### How it was verified\n{_proof(gate)}",
        f"### Story\n{line(f'{story.id} {story.title}', limits.STATUS_LINE_CHARS)}: {story.verdict}" if story else "",
    ]
    text = "\n\n".join(filter(None, parts))
    return f"{cut(text, limits.GITHUB_BODY_CHARS - len(ending))}\n\n{ending}"


def _why(spec: RunSpec) -> str:
    asked = ""
    if spec.github:
        asked = f"Asked for by {line(spec.github.sender, 100)} in #{spec.github.number}:\n\n"
    quoted = prose(spec.task, _TASK_CHARS).splitlines()
    return asked + "\n".join(f"> {part}" for part in quoted)


def _proof(gate: GateReport) -> str:
    table = ["| check | result | tests |", "|---|---|---|", *map(_row, gate.checks)] if gate.checks else []
    return "\n".join([prose(gate.summary, limits.STATUS_LINE_CHARS), *([""] if table else []), *table])


def _row(check: CheckResult) -> str:
    tests = check.tests
    counts = f"{tests.passed} passed, {tests.failed} failed, {tests.skipped} skipped" if tests else ""
    return f"| `{line(check.command, _COMMAND_CHARS)}` | {_RESULTS[check.status]} | {counts} |"


def _closes(spec: RunSpec) -> str:
    """An issue is done when this is merged; a pull request is not."""
    return f"Closes #{spec.github.number}" if spec.github and spec.github.pull is None else ""


def _named(run_id: str, link: str | None) -> str:
    return f"<sub>Sandpiper, run {f'[{run_id}]({link})' if link else f'`{run_id}`'}</sub>"
