"""What a process can be told by: words in its command line or its environment."""

from __future__ import annotations

from pathlib import Path


def with_any_of(traces: list[str]) -> list[str]:
    processes = {entry: said_by(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    return [
        f"{entry.name}: {said[:200]}" for entry, said in processes.items() if any(trace in said for trace in traces)
    ]


def said_by(process: Path) -> str:
    try:
        return "".join((process / name).read_text(errors="replace") for name in ("cmdline", "environ"))
    except OSError:  # it has ended
        return ""
