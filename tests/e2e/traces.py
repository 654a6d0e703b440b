"""What a process can be told by: words in its command line or its environment."""

from __future__ import annotations

from tests.proc import pids, said


def with_any_of(traces: list[str]) -> list[str]:
    processes = {pid: (said(pid, "cmdline") + said(pid, "environ")).decode(errors="replace") for pid in pids()}
    return [f"{pid}: {words[:200]}" for pid, words in processes.items() if any(trace in words for trace in traces)]
