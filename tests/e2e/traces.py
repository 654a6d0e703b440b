"""What a process can be told by: words in its command line or its environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.proc import pids, said


def traces_of(info: dict[str, Any]) -> tuple[Path, list[str]]:
    """The scratch directory of a stack, and what each of its processes has in its command line or environment."""
    environment = said(info["pids"]["aws"], "environ").decode().split("\0")
    scratch = next(pair.removeprefix("TMPDIR=") for pair in environment if pair.startswith("TMPDIR="))
    return Path(scratch), [info["state_dir"], scratch, info["aws_endpoint"]]


def with_any_of(traces: list[str]) -> list[str]:
    processes = {pid: (said(pid, "cmdline") + said(pid, "environ")).decode(errors="replace") for pid in pids()}
    return [f"{pid}: {words[:200]}" for pid, words in processes.items() if any(trace in words for trace in traces)]
