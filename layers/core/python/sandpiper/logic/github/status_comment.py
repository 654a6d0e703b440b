"""The one status comment of a run, as markdown. The same for the control plane and for the sandbox at work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.logic.github.markdown import block, cut, details, line, prose, visible
from sandpiper.logic.github.status_words import headline, hint, next_step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sandpiper.models.run import CheckResult, GateReport, Plan, Run, Usage

_MARKS = {"passed": "✅", "failed": "❌", "known_broken": "⚠️ failed before", "timed_out": "⌛"}
_GATES = {"passed": "✅ passed", "failed": "❌ failed", "skipped": "⚠️ skipped: nothing was verified"}


@dataclass(frozen=True)
class Live:
    """What only the sandbox knows while it works. `steps_done` counts from the first step of the plan."""

    plan: Plan | None = None
    steps_done: int = 0
    activity: str = ""
    gate: GateReport | None = None
    usage: Usage | None = None


def marker(run_id: str) -> str:
    """Hidden in the comment: by it a comment is found again, and known to be ours."""
    return f"<!-- sandpiper:run {run_id} -->"


def link_of(public_url: str | None, run_id: str) -> str | None:
    return f"{public_url.rstrip('/')}/runs/{run_id}" if public_url else None


def render(run: Run, *, link: str | None, now: datetime, live: Live | None = None, diff: str | None = None) -> str:
    """`diff` is the text of the finished work, if it is at hand."""
    known = live or Live()
    parts = [marker(run.run_id), _title(run), *_activity(run, known), *_error(run), *_asked(run), *_summary(run)]
    parts += [*_plan(run, known), *_gate(run, known), *_outcome(run), *_diff(run, diff)]
    parts += [next_step(run), _footer(run, known, link, now)]
    return cut("\n\n".join(filter(None, parts)), limits.STATUS_COMMENT_CHARS)


def _title(run: Run) -> str:
    command = f" `/{run.spec.github.command}`" if run.spec.github else ""
    return f"### Sandpiper{command}: {headline(run)}"


def _activity(run: Run, live: Live) -> Iterator[str]:
    if live.activity and not run.is_terminal:
        yield f"_{line(live.activity, limits.STATUS_LINE_CHARS).replace('_', ' ')}_"


def _error(run: Run) -> Iterator[str]:
    if run.error and run.is_terminal:
        yield f"**{line(run.error.type, 100)}**: {prose(run.error.message, limits.STATUS_PROSE_CHARS)}"
        yield hint(run.error.type)


def _asked(run: Run) -> Iterator[str]:
    if run.is_terminal:
        return
    if run.status == "suspended" and run.result and run.result.question:
        yield _quoted(run.result.question)
    if run.approval:
        shown = "\n".join(f"{name}: {value}" for name, value in run.approval.shown.items())
        yield f"**{run.approval.risk} risk**: {prose(run.approval.reason, limits.STATUS_LINE_CHARS)}"
        if len(shown) > limits.STATUS_PROSE_CHARS:
            yield f"⚠️ **This is not all of it.** `sandpiper show {run.run_id}` has the rest: read it first."
        yield block(shown, limits.STATUS_PROSE_CHARS)


def _quoted(text: str) -> str:
    return "\n".join(f"> {part}" for part in prose(text, limits.STATUS_PROSE_CHARS).splitlines())


def _summary(run: Run) -> Iterator[str]:
    said = run.error.message if run.error else ""
    if run.is_terminal and run.result and run.result.summary not in said:
        yield prose(run.result.summary, limits.STATUS_PROSE_CHARS)


def _plan(run: Run, live: Live) -> Iterator[str]:
    plan = live.plan or (run.result.plan if run.result else None)
    if plan is None or not plan.steps:
        return
    done = len(plan.steps) if run.status == "completed" else live.steps_done
    steps = plan.steps[: limits.STATUS_ROWS]
    boxes = [f"- [{'x' if n < done else ' '}] {line(step, limits.STATUS_LINE_CHARS)}" for n, step in enumerate(steps)]
    yield "\n".join(["**Plan**", *boxes])


def _gate(run: Run, live: Live) -> Iterator[str]:
    gate = live.gate or (run.result.gate if run.result else None)
    if gate is None:
        return
    yield f"**Quality gate**: {_GATES[gate.status]}"
    if gate.checks:
        yield "\n".join(
            ["| check | result | tests |", "|---|---|---|", *map(_check, gate.checks[: limits.STATUS_ROWS])]
        )


def _check(check: CheckResult) -> str:
    tests = f"{check.tests.passed} passed, {check.tests.failed} failed" if check.tests else ""
    return f"| `{line(check.command, 120)}` | {_MARKS[check.status]} | {tests} |"


def _outcome(run: Run) -> Iterator[str]:
    result = run.result
    if result is None or not run.is_terminal:
        return
    if result.suites:
        rows = [
            f"| `{line(suite.command, 120)}` | {_MARKS[suite.status]} |"
            for suite in result.suites[: limits.STATUS_ROWS]
        ]
        yield "\n".join(["| suite | result |", "|---|---|", *rows])
    if result.findings:
        yield "1 remark." if len(result.findings) == 1 else f"{len(result.findings)} remarks."
    if result.pull_request:
        kind = "Draft pull request" if result.pull_request.draft else "Pull request"
        yield f"{kind}: #{result.pull_request.number}"
    elif result.commit and result.commit.pushed:
        yield f"Pushed to `{line(result.commit.branch, 200)}`."


def _diff(run: Run, diff: str | None) -> Iterator[str]:
    if not diff or not run.is_terminal:
        return
    stat = run.result.diff_stat if run.result else None
    files = "file" if stat and stat.files == 1 else "files"
    size = f"{stat.files} {files}, +{stat.insertions} −{stat.deletions}" if stat else "what changed"
    yield details(f"Diff: {size}", block(_shortened(diff), limits.STATUS_DIFF_CHARS, language="diff"))


def _shortened(diff: str) -> str:
    if len(diff) <= limits.STATUS_DIFF_CHARS:
        return diff
    kept = visible(diff)[: limits.STATUS_DIFF_CHARS - 100].rpartition("\n")[0]
    return f"{kept}\n(the rest is left out here)"


def _footer(run: Run, live: Live, link: str | None, now: datetime) -> str:
    usage = live.usage or run.usage
    name = f"[{run.run_id}]({link})" if link else f"`{run.run_id}`"
    cost = f" · ${usage.cost_usd:.2f} · {usage.turns} turns" if usage.turns else ""
    attempt = f" · attempt {run.attempt}" if run.losses else ""
    return f"<sub>{name}{cost}{attempt} · {now:%Y-%m-%d %H:%M} UTC</sub>"
