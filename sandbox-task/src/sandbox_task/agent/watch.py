"""Whether the agent gets anywhere. It is told when it does not; the limits of the run are what stops it."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from sandbox_task.agent.ports import Sink
    from sandbox_task.model.port import ToolCall, ToolResult

_HARMLESS = frozenset({"update_plan", "ask_user", "finish", "read_file", "search", "list_files", "read_output"})
_REPEATED = (
    "You have made this same call {times} times with the same outcome. Repeating it will not help: "
    "find out why, or try another way."
)
_FAILED = "{times} calls in a row have failed. Think about the cause, then call `update_plan` with another approach."
_REFUSED = "Nothing was done. Call `update_plan` with another approach first: {times} calls in a row have failed."


class Watch:
    """Rules over calls and what came of them; it keeps no more than counts."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._seen: Counter[tuple[str, str, str]] = Counter()
        self._failures = 0

    def refusal(self, call: ToolCall) -> str | None:
        """Why a call is not made: an agent that fails on and on needs a new plan, not another try."""
        if self._failures <= limits.MAX_FAILURES_IN_A_ROW or call.name in _HARMLESS:
            return None
        return _REFUSED.format(times=self._failures)

    def note(self, call: ToolCall, result: ToolResult, *, failed: bool) -> str | None:
        """What the agent should be told beside the result."""
        if call.name == "update_plan":
            self._failures = 0
            return None
        return self._count_failures(call, failed=failed) or self._count_repeats(call, result)

    def _count_failures(self, call: ToolCall, *, failed: bool) -> str | None:
        self._failures = self._failures + 1 if failed else 0
        if self._failures != limits.MAX_FAILURES_IN_A_ROW:
            return None
        self._sink.emit("agent_no_progress", reason="failures_in_a_row", times=self._failures, tool=call.name)
        return _FAILED.format(times=self._failures)

    def _count_repeats(self, call: ToolCall, result: ToolResult) -> str | None:
        key = (call.name, json.dumps(call.arguments, sort_keys=True, default=str), result.content)
        self._seen[key] += 1
        times = self._seen[key]
        if times % limits.REPEATS_WITHOUT_PROGRESS:
            return None
        self._sink.emit("agent_no_progress", reason="same_call_same_outcome", times=times, tool=call.name)
        return _REPEATED.format(times=times)
