"""What is said of a run when it is over, or waits: what it hands back, the gate, the branch, the cost, the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper_cli.findings import duration_lines, gate_lines, handed_back
from sandpiper_cli.narrate import Line, error_text
from sandpiper_cli.text import neutralise, one_line
from sandpiper_cli.waiting import waiting_lines

if TYPE_CHECKING:
    from sandpiper_cli.client import Json, Link

DIFF_LINES = 200
_WIDE = 160
_STYLE_OF_STATUS = {"completed": "good", "failed": "bad", "cancelled": "warn", "timed_out": "bad", "suspended": "warn"}


def closing_lines(run: Json, diff: str | None, log: Link | None) -> list[Line]:
    result = run.get("result") or {}
    lines = diff_lines(diff, limit=DIFF_LINES, run_id=run["run_id"]) if diff else []
    lines += handed_back(result)
    lines += gate_lines(result.get("gate"))
    lines += [Line("plain", ""), *_head_lines(run, result.get("summary") or "")]
    lines += _facts(result or _spent(run))
    if log is not None:
        lines += [Line("plain", f"Log     (until {log.expires_at})"), Line("link", log.url)]
    return lines


def tokens_in(usage: Json) -> int:
    return sum(usage.get(f"{kind}_tokens", 0) for kind in ("input", "cache_read", "cache_write"))


def status_style(status: str) -> str:
    return _STYLE_OF_STATUS.get(status, "status")


def diff_lines(diff: str, *, limit: int | None, run_id: str) -> list[Line]:
    found = neutralise(diff).rstrip("\n").split("\n")
    shown = found if limit is None else found[:limit]
    lines = [Line(_diff_style(line), line) for line in shown]
    if hidden := len(found) - len(shown):
        lines.append(Line("dim", f"… {hidden} more lines: sandpiper diff {run_id}"))
    return lines


def _diff_style(line: str) -> str:
    if line.startswith(("diff ", "index ", "+++", "---", "new file", "deleted file", "rename ")):
        return "title"
    return {"+": "added", "-": "removed", "@": "hunk"}.get(line[:1], "plain")


def _outcome(run: Json) -> str:
    words = f"{run['run_id']} {run['status'].replace('_', ' ')}"
    reason = error_text(run) if run.get("error") else ""
    return f"{words}: {reason}" if reason else words


def _head_lines(run: Json, summary: str) -> list[Line]:
    if run["status"] == "suspended":
        return waiting_lines(run)
    return [Line(status_style(run["status"]), _outcome(run)), *_summary_lines(run, summary)]


def _summary_lines(run: Json, summary: str) -> list[Line]:
    """Unless the error has said it already."""
    if not summary or summary in str((run.get("error") or {}).get("message")):
        return []
    return [Line("words", text) for text in neutralise(summary).strip().split("\n")]


def _spent(run: Json) -> Json:
    """All that is known of a run whose sandbox handed nothing back."""
    usage = run.get("usage") or {}
    return {"usage": usage} if usage.get("turns") else {}


def _facts(result: Json) -> list[Line]:
    lines = []
    if stat := result.get("diff_stat"):
        files = "1 file" if stat["files"] == 1 else f"{stat['files']} files"
        counts = f"{files}, +{stat['insertions']} -{stat['deletions']}" if stat["files"] else "none"
        lines.append(Line("plain", f"Changes {counts}"))
    lines += _where(result)
    if usage := result.get("usage"):
        tokens = f"{tokens_in(usage):,} tokens in, {usage['output_tokens']:,} out"
        turns = "1 turn" if usage["turns"] == 1 else f"{usage['turns']} turns"
        lines.append(Line("plain", f"Cost    ${usage['cost_usd']:.4f} ({turns}, {tokens})"))
    return lines + duration_lines(result.get("durations_ms") or {})


def _where(result: Json) -> list[Line]:
    """The branch and the pull request that the work is in."""
    lines = []
    if commit := result.get("commit"):
        pushed = "pushed" if commit.get("pushed") else "not pushed"
        branch = one_line(commit["branch"], _WIDE)
        lines.append(Line("plain", f"Branch  {branch} at {commit['sha'][:12]} ({pushed})"))
        lines += [Line("link", one_line(commit["url"], 500))] if commit.get("url") else []
    if pull := result.get("pull_request"):
        draft = " (draft)" if pull["draft"] else ""
        lines += [Line("plain", f"Pull    #{pull['number']}{draft}"), Line("link", one_line(pull["url"], 500))]
    return lines
