"""Events in words: what a person is told of each. No terminal here, so that it can be tested as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sandpiper_cli.approvals import approval_lines
from sandpiper_cli.text import about, byte_size, limit_words, neutralise, one_line, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandpiper_cli.client import Event

_WIDE = 160
_TOLD_BY_OTHER_EVENTS = frozenset({"update_plan", "finish"})
_OUTPUT_ENDS_AT = frozenset({
    "tool_started", "tool_completed", "tool_failed", "gate_baseline_completed",
    "gate_check_started", "gate_check_passed", "gate_check_failed", "gate_check_known_broken",
    "run_suspended", "run_recovered", "run_completed", "run_failed", "run_cancelled", "run_timed_out",  # of all begun
})  # fmt: skip
_NAMES = 5  # of failing tests; the event has more
OUTPUT_LINES = 12  # of one command; the log has the rest


class Line(NamedTuple):
    """`style` is a name that the view turns into colours."""

    style: str
    text: str


Data = dict[str, Any]


class Narrator:
    """Remembers only the output of the command in hand: its unfinished line, and how much of it was shown."""

    def __init__(self, output_lines: int = OUTPUT_LINES) -> None:
        self._limit = output_lines
        self._unfinished = ""
        self._shown = 0
        self._hidden = 0
        self._omitted = 0

    def tell(self, event: Event) -> list[Line]:
        if event.type == "tool_output":
            self._omitted += int(event.data.get("omitted_bytes") or 0)
            return self._output(str(event.data.get("text") or event.data.get("preview") or ""))
        before = self._end_of_output() if event.type in _OUTPUT_ENDS_AT else []
        teller = _TELLERS.get(event.type)
        return before + (teller({"run_id": event.run_id, **event.data}) if teller else [])

    def _output(self, text: str) -> list[Line]:
        *lines, self._unfinished = (self._unfinished + neutralise(text)).split("\n")
        room = max(0, self._limit - self._shown)
        self._shown += len(lines[:room])
        self._hidden += len(lines[room:])
        return [Line("output", f"    {line}") for line in lines[:room]]

    def _end_of_output(self) -> list[Line]:
        lines = self._output("\n") if self._unfinished else []
        if self._omitted:
            lines.append(Line("dim", f"    … {byte_size(self._omitted)} and more in the log"))
        elif self._hidden:
            lines.append(Line("dim", f"    … {self._hidden} more lines in the log"))
        self._shown = self._hidden = self._omitted = 0
        return lines


def plan_lines(plan: Data) -> list[Line]:
    lines = [Line("plan", f"Plan: {one_line(str(plan.get('summary', '')), _WIDE)}")]
    lines += [Line("step", f"  ☐ {one_line(str(step), _WIDE)}") for step in plan.get("steps") or ()]
    return lines


def error_text(data: Data) -> str:
    error = data.get("error")
    if isinstance(error, dict):
        return one_line(f"{error.get('message', '')} ({error.get('type', 'internal_error')})", 1000)
    return one_line(str(data.get("message") or error or data.get("reason") or ""), 1000)


def _plan(data: Data) -> list[Line]:
    return plan_lines(data["plan"] if isinstance(data.get("plan"), dict) else data)


def _message(data: Data) -> list[Line]:
    text = neutralise(str(data.get("text") or data.get("preview") or "")).strip()
    style = "dim" if data.get("kind") == "thinking" else "words"
    return [Line(style, line) for line in text.split("\n")] if text else []


def _tool_name(data: Data) -> str:
    return one_line(str(data.get("tool") or "tool"), _WIDE)


def _tool_started(data: Data) -> list[Line]:
    if data.get("tool") in _TOLD_BY_OTHER_EVENTS:
        return []
    if data.get("command"):
        return [Line("command", f"  $ {one_line(str(data['command']), _WIDE)}")]
    target = one_line(str(data.get("pattern") or data.get("path") or ""), _WIDE)
    return [Line("tool", f"  • {_tool_name(data)} {target}".rstrip())]


def _slot_waiting(data: dict[str, Any]) -> list[Line]:
    place = one_line(str(data.get("position", "?")), 10)
    whose = " of your organization" if data.get("line") == "org" else ""
    words = f"Waiting for a free slot{whose}, place {place} in line{about(data.get('estimated_wait_seconds'))}"
    return [Line("status", words)]


def _tool_completed(data: Data) -> list[Line]:
    code = data.get("exit_code")
    if code is None:
        return []
    took = seconds(float(data.get("duration_ms", 0)) / 1000)
    return [Line("good" if code == 0 else "bad", f"    exit {code}, {took}")]


def _tool_failed(data: Data) -> list[Line]:
    return [Line("bad", f"    {_tool_name(data)} failed: {error_text(data)}"), *_tool_completed(data)]


def _short_sha(sha: object) -> str:
    return neutralise(str(sha or "?")[:12])


def _cloned(data: Data) -> list[Line]:
    return [Line("status", f"Cloned at {_short_sha(data.get('commit'))}")]


def _committed(data: Data) -> list[Line]:
    subject = str(data.get("message") or "").partition("\n")[0]
    return [Line("status", f"Commit {_short_sha(data.get('sha'))} {one_line(subject, _WIDE)}")]


def _check(mark: str, style: str, note: str = "") -> Callable[[Data], list[Line]]:
    def tell(data: Data) -> list[Line]:
        names = [one_line(str(name), _WIDE) for name in data.get("newly_failing") or ()]
        more = [Line(style, f"    and {len(names) - _NAMES} more")] if len(names) > _NAMES else []
        told = Line(style, f"  {mark} {one_line(str(data.get('command', 'check')), _WIDE)}{note}")
        return [told, *(Line(style, f"    {name}") for name in names[:_NAMES]), *more]

    return tell


def _before(data: Data) -> list[Line]:
    ending = "passes" if data.get("status") == "passed" else "fails"
    return [Line("dim", f"Before the work: {one_line(str(data.get('command', 'check')), _WIDE)} {ending}")]


def _says(style: str, template: str, **defaults: str) -> Callable[[Data], list[Line]]:
    """One line with fields of the data in it; everything that comes from the data is made harmless."""

    def tell(data: Data) -> list[Line]:
        fields = {name: one_line(str(data.get(name) or default), _WIDE) for name, default in defaults.items()}
        return [Line(style, template.format(**fields).rstrip())]

    return tell


def _ended(style: str, words: str) -> Callable[[Data], list[Line]]:
    def tell(data: Data) -> list[Line]:
        reason = error_text(data)
        return [Line(style, f"{words}: {reason}" if reason else words)]

    return tell


_SUSPENDED = {
    "budget_exhausted": "the budget is used up",
    "awaiting_input": "waiting for an answer",
    "awaiting_ci": "waiting for the repository's CI",
    "awaiting_approval": "waiting for an approval",
    "paused": "paused",
}
_NO_PROGRESS = {
    "failures_in_a_row": "{times} failures in a row",
    "same_call_same_outcome": "{tool} came to the same {times} times",
}


def _suspended(data: Data) -> list[Line]:
    reason = str(data.get("reason") or "no reason given")
    question = one_line(str(data.get("question") or ""), 1000)
    lines = [Line("warn", f"Suspended: {_SUSPENDED.get(reason, one_line(reason, _WIDE))}")]
    return lines + ([Line("words", f"  {question}")] if question else [])


def _said(data: Data) -> list[Line]:
    text = neutralise(str(data.get("text") or data.get("preview") or "")).strip()
    who = one_line(str(data.get("by") or "somebody"), 60)
    return [Line("words", f"{who}: {text}")]


def _approval_requested(data: Data) -> list[Line]:
    found = approval_lines(str(data["run_id"]), str(data.get("approval_id")), data)
    return [Line(style, text) for style, text in found]


def _approval_resolved(data: Data) -> list[Line]:
    done = "Approved" if data.get("decision") == "approve" else "Rejected"
    scope = " for the rest of the run" if data.get("scope") == "run" else ""
    note = one_line(str(data.get("note") or ""), 500)
    who = one_line(str(data.get("by") or "somebody"), 60)
    return [Line("good" if done == "Approved" else "warn", f"{done} by {who}{scope}{f': {note}' if note else ''}")]


def _extended(data: Data) -> list[Line]:
    old, new = _limits(data.get("old")), _limits(data.get("new"))
    raised = [f"{_limit(name, old.get(name))} → {_limit(name, limit)}" for name, limit in new.items()]
    who = one_line(str(data.get("by") or "somebody"), 60)
    return [Line("status", f"Budget raised by {who}: {', '.join(raised)}" if raised else f"Budget raised by {who}")]


def _limits(found: object) -> Data:
    return found if isinstance(found, dict) else {}


def _limit(name: str, limit: object) -> str:
    return limit_words(one_line(name, 40), limit) if isinstance(limit, int | float) else "?"


def _no_progress(data: Data) -> list[Line]:
    words = _NO_PROGRESS.get(str(data.get("reason")))
    if words is None:
        return _ended("warn", "No progress")(data)
    told = words.format(times=data.get("times", "several"), tool=_tool_name(data))
    return [Line("warn", f"No progress: {neutralise(told)}")]


_TELLERS: dict[str, Callable[[Data], list[Line]]] = {
    "run_queued": _says("status", "Queued"),
    "run_slot_waiting": _slot_waiting,
    "run_dispatched": _says("status", "Starting a sandbox"),
    "run_started": _says("status", "Sandbox is up"),
    "run_suspended": _suspended,
    "run_resumed": _says("status", "Going on"),
    "run_message_received": _said,
    "run_recovered": _ended("warn", "The sandbox was lost; going on in a new one"),
    "run_completed": _says("good", "Run completed"),
    "run_failed": _ended("bad", "Run failed"),
    "run_cancelled": _ended("warn", "Run cancelled"),
    "run_timed_out": _ended("bad", "Run timed out"),
    "repo_clone_started": _says("status", "Cloning {repo}", repo="the repository"),
    "repo_clone_completed": _cloned,
    "git_branch_created": _says("status", "Branch {branch}", branch="?"),
    "file_changed": _says("file", "    ✎ {path}", path="?"),
    "prompt_strategy_selected": _says("dim", "Strategy {strategy}: {reason}", strategy="auto", reason=""),
    "planning_started": _says("status", "Planning"),
    "planning_completed": _plan,
    "plan_updated": _plan,
    "agent_message": _message,
    "agent_finished": _says("status", "The agent is {status}", status="done"),
    "agent_turn_failed": _ended("warn", "The model's turn failed"),
    "agent_no_progress": _no_progress,
    "agent_finish_rejected": _ended("warn", "Not finished yet"),
    "agent_budget_exhausted": _ended("warn", "The budget is used up"),
    "agent_budget_extended": _extended,
    "approval_requested": _approval_requested,
    "approval_resolved": _approval_resolved,
    "approval_expired": _says("warn", "Nobody approved it in time"),
    "tool_started": _tool_started,
    "tool_completed": _tool_completed,
    "tool_failed": _tool_failed,
    "gate_baseline_completed": _before,
    "gate_checks_selected": _says("status", "Quality gate"),
    "gate_check_started": _check("$", "command"),
    "gate_check_passed": _check("✔", "good"),
    "gate_check_failed": _check("✘", "bad"),
    "gate_check_known_broken": _check("~", "warn", " (was broken before)"),
    "gate_repair_started": _says("warn", "The gate is red: back to the agent"),
    "gate_completed": _says("status", "Gate {status}: {summary}", status="?", summary=""),
    "gate_skipped": _ended("warn", "Gate skipped"),
    "story_selected": _says("status", "Story {id} {title}", id="", title=""),
    "story_updated": _says("status", "Story {id}: {verdict}", id="", verdict="updated"),
    "commit_created": _committed,
    "commit_pushed": _says("good", "Pushed to branch {branch}", branch="?"),
    "pr_opened": _says("good", "Pull request #{number}: {url}", number="?", url=""),
    "pr_updated": _says("good", "Pull request #{number} has the new commit: {url}", number="?", url=""),
    "review_submitted": _says("good", "Review submitted: {url}", url=""),
    "commit_skipped": _ended("dim", "Nothing committed"),
    "log_stored": _says("dim", "Log stored"),
    "warning": _ended("warn", "Warning"),
}
