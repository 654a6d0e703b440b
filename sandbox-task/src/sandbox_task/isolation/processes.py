"""Processes as /proc shows them, for A and for the executor, which is given this file as text (see there)."""

# Importing pathlib would be half of the time that the wall takes to go up.
# ruff: noqa: PTH123

from __future__ import annotations

from sandbox_task.isolation.record import Record
from sandbox_task.isolation.slim import os, suppress

CLONE_VFORK = 0x4000
LONGEST = 4096
ROUNDS = 10


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
        tasks = f"/proc/{self.pid}/task"
        return [self] if self.threads <= 1 else read_all(tasks, numbers(tasks))


def snapshot() -> list[Process]:
    """All processes that this one can see, also those that are over.

    Who is read just before his parent ends has a parent that is not there, and would be found below nobody: then all
    is read again."""
    found: list[Process] = []
    for _ in range(ROUNDS):
        pids = numbers("/proc")
        found = read_all("/proc", pids)
        gone = set(pids).difference(process.pid for process in found)
        if not any(process.parent in gone for process in found):
            break
    return found


def numbers(place: str) -> list[int]:
    with suppress(OSError):
        return [int(name) for name in os.listdir(place) if name.isdigit()]
    return []


def read_all(place: str, pids: list[int]) -> list[Process]:
    """The processes that are listed there, or the threads of one."""
    found = []
    for pid in pids:
        with suppress(OSError):
            fields = contents(f"{place}/{pid}/stat").rpartition(b")")[2].decode("ascii").split()
            found.append(Process(pid, int(fields[1]), int(fields[2]), fields[0], int(fields[17])))
    return found


def contents(path: str) -> bytes:
    """Of a short file, in as few calls as there can be: `open` makes twice as many, and there are many processes."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, LONGEST)
    finally:
        os.close(fd)


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
    """Those that are alive."""
    return [process for process in below(root, snapshot()) if not process.is_over]


def below(root: int, among: list[Process]) -> list[Process]:
    by_parent: dict[int, list[Process]] = {}
    for process in among:
        by_parent.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    todo = [root]
    while todo:
        direct = by_parent.get(todo.pop(), [])
        found += direct
        todo += [process.pid for process in direct]
    return found


def children(pid: int) -> list[int]:
    """Of one that starts no more of them: only then is the kernel's own list complete. Not every kernel has it."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return [process.pid for process in snapshot() if process.parent == pid]


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
