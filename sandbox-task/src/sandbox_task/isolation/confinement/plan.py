"""What is asked of `inside`, put together by A: as data, because B can't be expected to read our files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandbox_task.isolation.confinement.filter import base_filter
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - libraries have it nowhere else
_TEMPORARY = "/tmp"  # noqa: S108 - nothing of ours is put there
_DEVICES = tuple(
    f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "fd", "pts/ptmx")
)
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/dev")
_MACHINE = ("/sys/fs/cgroup", "/sys/devices/system/cpu", "/sys/kernel/mm")  # how runtimes find out their size


@dataclass(frozen=True)
class Confinement:
    """`readable` and `writable` are hierarchies as B sees them; `temporary` is made by B if it is not there."""

    readable: tuple[str, ...]
    writable: tuple[str, ...]
    temporary: str

    def as_data(self) -> dict[str, Any]:
        return {
            "limits": {
                "NPROC": limits.WALL_PROCESSES,
                "NOFILE": limits.WALL_OPEN_FILES,
                "FSIZE": limits.WALL_FILE_BYTES,
                "CPU": limits.WALL_CPU_SECONDS,
                "CORE": 0,
            },
            "readable": self.readable,
            "writable": self.writable,
            "devices": _DEVICES,
            "temporary": self.temporary,
            "filter": base_filter(os.uname().machine),
        }


def in_own_mounts(*, workspace: str, home: str) -> Confinement:
    """What is mounted is what B may see; of that, its own places are all it may change."""
    return Confinement(("/",), (workspace, home, _TEMPORARY, _SHARED_MEMORY), _TEMPORARY)


def in_shared_files(*, workspace: Path, home: Path, needed: Iterable[Path]) -> Confinement:
    """The machine's files are B's, too: only the system is opened, and neither A's rooms nor another run's.

    Programs that insist on the machine's temporary directory have it, unless the rooms of runs are in there.
    """
    temporary = home / "tmp"
    shared = () if workspace.is_relative_to(_TEMPORARY) else (_TEMPORARY,)
    return Confinement(
        (*_SYSTEM, *_MACHINE, *map(str, needed)),
        (str(workspace), str(home), _SHARED_MEMORY, *shared),
        str(temporary),
    )
