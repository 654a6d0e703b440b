"""A suspended run: why it waits, that waiting costs nothing, and the command that lets it go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper_cli.approvals import approval_lines
from sandpiper_cli.narrate import Line
from sandpiper_cli.text import limit_words, neutralise

if TYPE_CHECKING:
    from sandpiper_cli.client import Json

_WHY = {
    "budget_exhausted": "it has used up its budget",
    "awaiting_input": "it waits for your answer",
    "awaiting_approval": "it waits for your approval",
    "awaiting_ci": "it waits for the repository's CI and goes on by itself",
    "paused": "it is paused",
}
_GO_ON = {
    "budget_exhausted": "sandpiper budget {run_id}",
    "awaiting_ci": "sandpiper resume {run_id}, to look at once",
    "awaiting_input": 'sandpiper say {run_id} "your answer"',
    "paused": "sandpiper resume {run_id}",
}


def waiting_lines(run: Json) -> list[Line]:
    reason = str(run.get("suspend_reason"))
    lines = [Line("warn", f"{run['run_id']} is suspended: {_WHY.get(reason, reason)}{_limit(run)}.")]
    lines += [Line("words", f"  {text}") for text in neutralise(run.get("question") or "").split("\n") if text]
    lines += _approval(run)
    lines.append(Line("plain", "Nothing runs and nothing is billed while it waits; what it has done is kept."))
    if reason in _GO_ON:
        lines.append(Line("plain", f"Go on   {_GO_ON[reason].format(run_id=run['run_id'])}"))
    return [*lines, Line("plain", f"Stop    sandpiper cancel {run['run_id']}")]


def _approval(run: Json) -> list[Line]:
    if not (asked := run.get("approval")):
        return []
    found = approval_lines(run["run_id"], asked["id"], {**(asked.get("shown") or {}), **asked})
    return [Line(style, text) for style, text in found]


def _limit(run: Json) -> str:
    name = str((run.get("result") or {}).get("exhausted"))
    limit = (run.get("budget") or {}).get(name)
    return f" of {limit_words(name, limit)}" if limit is not None else ""
