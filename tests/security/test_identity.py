"""What B could want of A's process: its environment, memory, descriptors, signals, identity."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.security.attacks import Attack, attempt, must_work, python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from tests.security.attacks import Rights
    from tests.security.bare import NoWall

ATTACKS = [
    Attack("environ", "cat /proc/{pid}/environ"),
    Attack("every environ", "cat /proc/[0-9]*/environ 2>/dev/null"),
    Attack("every environ of a thread", "cat /proc/{pid}/task/*/environ"),
    Attack("memory by /proc", "tail -c +$(({address} + 1)) /proc/{pid}/mem 2>&1 | head -c 32"),
    Attack(
        "memory by process_vm_readv",
        python("""
        found = ctypes.create_string_buffer(32)
        ours = (ctypes.c_size_t * 2)(ctypes.addressof(found), 32)
        theirs = (ctypes.c_size_t * 2)({address}, 32)
        call(310, 270, {pid}, ours, ctypes.c_ulong(1), theirs, ctypes.c_ulong(1), ctypes.c_ulong(0))
        print(found.raw.decode())
        """),
    ),
    Attack(
        "ptrace",
        python("""
        call(101, 117, 0x4206, {pid}, 0, 0)  # PTRACE_SEIZE
        fired()
        """),
    ),
    Attack("descriptors by /proc", "cat /proc/{pid}/fd/{fd}"),
    Attack(
        "descriptors by pidfd_getfd",
        python("""
        fd = call(438, 438, call(434, 434, {pid}, 0), {fd}, 0)
        print(os.pread(fd, 100, 0).decode())
        """),
    ),
    Attack("directory", "cat /proc/{pid}/cwd/secret"),
    Attack("root directory", "cat /proc/{pid}/root/{private}/secret"),
    Attack("files through init's root", "cat /proc/1/root/{private}/secret", kernel_may_refuse=True),
    Attack("files", "cat {private}/secret; ls {private} && echo {mark} | rev"),
    Attack("signal", "kill -USR1 {pid} && echo {mark} | rev"),
    Attack(
        "signal by pidfd",
        python("""
        import signal
        signal.pidfd_send_signal(os.pidfd_open({pid}), signal.SIGUSR1)
        fired()
        """),
    ),
    Attack("memory map", "grep -q . /proc/{pid}/maps && echo {mark} | rev"),
    Attack("program", "readlink /proc/{pid}/exe && echo {mark} | rev"),
    Attack("limits", "prlimit --pid {pid} --core=0:0 && echo {mark} | rev"),
    Attack("processors", python("os.sched_setaffinity({pid}, os.sched_getaffinity({pid}))\nfired()")),
    Attack("who dies first", "echo 1 > /proc/{pid}/oom_score_adj && echo {mark} | rev"),
    Attack("priority", "renice -n 19 -p {pid} && echo {mark} | rev"),
    Attack(
        "abstract Unix socket",
        python("""
        peer = socket.socket(socket.AF_UNIX)
        peer.connect("\\0" "{socket}")
        print(peer.recv(100).decode())
        """),
        works_as="worker",
    ),
    Attack(
        "the supervisor's session",
        python("""
        if os.getsid(0) == {session}:
            fired()
        """),
    ),
    Attack(
        "setuid binary", "./as-root -c 'import os; print(os.geteuid())' | grep -qx 0 && echo {mark} | rev", "worker"
    ),
    Attack(
        "inherited descriptors",
        python("""
        for fd in range(3, 256):
            try:
                os.fstat(fd)
                fired()
            except OSError:
                pass
        """),
    ),
]


def _id(attack: Attack) -> str:
    return attack.name


@pytest.fixture(scope="module", autouse=True)
def traps(rooms: Rooms, bare: Rooms) -> None:
    """A binary that makes everybody root, where B can run it."""
    for place in (rooms.workspace, bare.workspace):
        trap = place / "as-root"
        shutil.copy(Path("/usr/bin/python3").resolve(), trap)
        os.chown(trap, 0, 0)
        trap.chmod(0o4755)


@pytest.fixture(autouse=True)
def open_descriptor(rooms: Rooms) -> Iterator[None]:
    """One that a careless supervisor lets its children have."""
    fd = os.open(rooms.private, os.O_RDONLY)
    os.set_inheritable(fd, True)  # noqa: FBT003 - its signature
    yield
    os.close(fd)


@pytest.mark.parametrize("attack", ATTACKS, ids=_id)
def test_the_supervisor_is_out_of_reach(wall: Wall, planted: dict[str, str], attack: Attack) -> None:
    outcome = attempt(wall, attack, planted)
    assert not outcome.succeeded, outcome.output


@pytest.mark.parametrize("attack", ATTACKS, ids=_id)
def test_the_attack_works_without_a_wall(
    no_wall: Callable[[Rights], NoWall], planted: dict[str, str], attack: Attack
) -> None:
    must_work(attempt(no_wall(attack.works_as), attack, planted), attack)


def test_a_signal_to_everybody_reaches_nobody_outside(wall: Wall, planted: dict[str, str]) -> None:
    wall.run("kill -9 -1", timeout=20, on_output=lambda _: None)
    assert Path("/proc", planted["pid"], "environ").exists()
    assert wall.run("true", timeout=20, on_output=lambda _: None).succeeded
