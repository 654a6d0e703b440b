"""What the executor's process does to itself before it hears of anything foreign; it holds for all that it starts.

It is given to the interpreter as text (see `executor`): standard library only, Python 3.9, already as B.
"""

# Importing pathlib would be half of the time that the wall takes to go up.
# ruff: noqa: PTH123

from __future__ import annotations

import resource

from sandbox_task.isolation.kernel import refuse_calls
from sandbox_task.isolation.landlock import CHANGE, READ, USE_DEVICE, close_files, landlock_version
from sandbox_task.isolation.slim import os, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

standing: list[str] = []


def confine(wanted: Mapping[str, Any]) -> None:
    """Raises OSError; then there is no executor. `standing` says afterwards which walls there are."""
    limit(wanted["limits"])
    with suppress(FileExistsError):
        os.mkdir(wanted["temporary"], 0o700)
    die_first()
    version = landlock_version()
    if version > 0:
        rights = {"readable": READ, "writable": CHANGE, "devices": USE_DEVICE}
        close_files(version, [(place, right) for kind, right in rights.items() for place in wanted[kind]])
        standing.append(f"landlock {version}")
    refuse_calls(wanted["filter"])
    standing.append("seccomp")


def limit(limits: Mapping[str, int]) -> None:
    """Never above what the container itself is held to."""
    for name, wanted in limits.items():
        kind = getattr(resource, "RLIMIT_" + name)
        hard = resource.getrlimit(kind)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (value, value))


def die_first() -> None:
    """When memory runs out, the kernel ends a process from behind the wall and never the supervisor."""
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
