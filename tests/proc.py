"""What /proc says of processes. Tests look there again and again, and paths would be most of what that takes."""

# ruff: noqa: PTH123, PTH208

from __future__ import annotations

import os


def pids() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]


def said(pid: str | int, name: str) -> bytes:
    """The file of that name; nothing for a process that has ended or is closed to us."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def is_alive(pid: str | int) -> bool:
    """A zombie has ended: it only waits for whoever started it to look."""
    return said(pid, "stat").rpartition(b")")[2].split()[:1] not in ([], [b"Z"])
