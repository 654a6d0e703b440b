"""Memory as commands use it up, all of them together: the kernel would end one of them, or the whole container."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from sandbox_task.isolation.bounds.quota import Quota
from sandbox_task.isolation.processes import descendants
from sandpiper import limits

_MACHINE, _GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
# Of a container: its limit, what it uses, and what of that the kernel can take back; in the two notations there are
_GROUPS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
)
_DIES_FIRST = "1000"  # set by what is behind the wall, which can't take it back


class Memory:
    """Says in words when commands have to end: little is left, and it is they who hold it."""

    def __init__(self, *, reserve: int, group: Path = _GROUP) -> None:
        self._reserve, self._group = reserve, group
        self._short = Quota(0, slack=limits.WALL_MEMORY_STEP_BYTES)

    def complaint(self) -> str | None:
        left = memory_left(self._group)
        if left >= self._reserve or held_behind_walls() < limits.WALL_MEMORY_STEP_BYTES:
            return None
        if self._short.exceeded(self._reserve - left):
            return "Memory is nearly used up. What ran was ended; let it work on less at once, or with fewer processes."
        return None


def memory_left(group: Path = _GROUP) -> int:
    """What can still be used, of the machine and of the container."""
    available = re.search(r"MemAvailable:\s*(\d+)", _MACHINE.read_text(encoding="ascii"))
    machine = int(available[1]) * 1024 if available else 1 << 62
    return min([machine, *(left for names in _GROUPS if (left := _left_in(group, *names)) is not None)])


def _left_in(group: Path, limit: str, used: str, spare: str) -> int | None:
    """None where there is no such limit."""
    try:
        at_most, taken = int((group / limit).read_text()), int((group / used).read_text())
        statistics = (group / limit).with_name("memory.stat").read_text(encoding="ascii")
    except (OSError, ValueError):  # a machine of its own; or "max"
        return None
    reclaimable = re.search(rf"^{spare} (\d+)", statistics, re.MULTILINE)
    return at_most - taken + (int(reclaimable[1]) if reclaimable else 0)


def held_behind_walls() -> int:
    """What the commands that this process has started hold for themselves."""
    total = 0
    for process in descendants(os.getpid()):
        with contextlib.suppress(OSError, ValueError):  # gone in between
            place = Path(f"/proc/{process.pid}")
            if (place / "oom_score_adj").read_text().strip() == _DIES_FIRST:
                _, resident, shared, *_ = map(int, (place / "statm").read_text().split())
                total += (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    return total
