"""Processes as /proc shows them, for A and for the executor, which is given this file as text (see there)."""

# Importing pathlib would be half of the time that the wall takes to go up.
# ruff: noqa: PTH123

from __future__ import annotations

from sandbox_task.isolation.record import Record
from sandbox_task.isolation.slim import os, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CLONE_VFORK = 0x4000


class Process(Record):
    pid: int
    parent: int
    group: int
    state: str  # of its first thread
    threads: int

    @property
    def is_over(self) -> bool:
        """A process whose first thread has ended looks like one that is over, and lives in its others."""
        return self.state == "Z" and self.threads <= 1

    @property
    def is_frozen(self) -> bool:
        """Told to stop, it does nothing more: it stands still, is over, or is held by the kernel until it does either
        (the parent of a process that is to become another program is held until that has happened)."""
        return all(thread.state in "TtXZD" for thread in self.all_threads())

    @property
    def is_still(self) -> bool:
        """The same, but who is held in the middle of a write goes on with it: only such a parent is held for good."""
        return all(
            thread.state in "TtXZ" or (thread.state == "D" and waits_for_child(self.pid, thread.pid))
            for thread in self.all_threads()
        )

    def all_threads(self) -> list[Process]:
        return [self] if self.threads <= 1 else list(read_all(f"/proc/{self.pid}/task"))


def processes(*, ended: bool = False) -> Iterator[Process]:
    """Every live process that this one can see; or those that have ended and that nobody has waited for."""
    return (process for process in read_all("/proc") if process.is_over == ended)


def read_all(place: str) -> Iterator[Process]:
    """The processes that are listed there, or the threads of one."""
    with suppress(OSError):
        for name in os.listdir(place):
            if name.isdigit():
                with suppress(OSError), open(f"{place}/{name}/stat", "rb") as file:
                    fields = file.read().decode("ascii", "replace").rpartition(")")[2].split()
                    yield Process(int(name), int(fields[1]), int(fields[2]), fields[0], int(fields[17]))


def waits_for_child(pid: int, thread: int) -> bool:
    """Whether it has started one that is still to become another program."""
    try:
        with open(f"/proc/{pid}/task/{thread}/syscall", encoding="ascii") as file:
            number, flags = file.read().split()[:2]
    except (OSError, ValueError):  # it is gone, closed to us, or at work
        return False
    vfork, clone = (None, 220) if os.uname().machine == "aarch64" else (58, 56)
    return int(number) == vfork or (int(number) == clone and bool(int(flags, 16) & CLONE_VFORK))


def descendants(root: int) -> list[Process]:
    children: dict[int, list[Process]] = {}
    for process in processes():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += [process.pid for process in below]
    return found


def signal_all(number: int) -> None:
    """Everything that this process may signal, but itself, at one moment: nobody can be born past it. That is the pid
    namespace, or what a scope of Landlock leaves; without either, all that has this user id."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(-1, number)


def send_signal(targets: list[Process], number: int) -> None:
    """To each, and to their groups: a group gets it at once, also those who are only just being born into it."""
    own = os.getpgid(0)
    for group in {process.group for process in targets} - {own, 0}:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    for process in targets:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)
