"""What B could use up: processes, files, disk, memory, the log; and what it could leave behind."""

from __future__ import annotations

import os
import resource
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox_task.isolation.bounds.bounded_wall import BoundedWall
from sandbox_task.isolation.bounds.disk import Disk
from sandbox_task.isolation.bounds.memory import Memory, memory_left
from sandbox_task.isolation.wall import WallError
from sandpiper import limits
from tests.security.attacks import Attack, attempt, must_work, python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from tests.security.attacks import Rights
    from tests.security.bare import NoWall

MIB = 1024**2
_RAISE = "import resource as r\nr.setrlimit(r.RLIMIT_{0}, (r.getrlimit(r.RLIMIT_{0})[1],) * 2)\n"

ATTACKS = [
    Attack("a file without end", "truncate -s 5G huge && rm huge && echo {mark} | rev", "worker"),
    Attack(
        "descriptors without end",
        python(_RAISE.format("NOFILE") + "kept = [os.open('/', os.O_RDONLY) for _ in range(5000)]\nfired()"),
        "worker",
    ),
    Attack("a core dump", python(_RAISE.format("CORE") + "r.getrlimit(r.RLIMIT_CORE)[1] and fired()"), "worker"),
    Attack(
        "more processes than there may be",
        python("import resource as r\nr.getrlimit(r.RLIMIT_NPROC)[1] != 4096 and fired()"),
        "worker",
    ),
    Attack(
        "a processor for ever",
        python("import resource as r\nr.getrlimit(r.RLIMIT_CPU)[1] == r.RLIM_INFINITY and fired()"),
        "worker",
    ),
    Attack(
        "the supervisor dies first when memory runs out",
        "cd /proc/self; echo 0 > oom_score_adj 2>/dev/null; [ $(cat oom_score_adj) -lt 1000 ] && echo {mark} | rev",
        "worker",
    ),
]


def _id(attack: Attack) -> str:
    return attack.name


@pytest.mark.parametrize("attack", ATTACKS, ids=_id)
def test_nothing_can_be_had_without_end(wall: Wall, planted: dict[str, str], attack: Attack) -> None:
    outcome = attempt(wall, attack, planted)
    assert not outcome.succeeded, outcome.output


@pytest.mark.parametrize("attack", ATTACKS, ids=_id)
def test_the_attack_works_without_a_wall(
    no_wall: Callable[[Rights], NoWall], planted: dict[str, str], attack: Attack
) -> None:
    must_work(attempt(no_wall(attack.works_as), attack, planted), attack)


@pytest.fixture
def nap() -> str:
    """A command that no other test has running."""
    return f"sleep 31.{int(secrets.token_hex(4), 16)}"


def alive(words: str) -> list[str]:
    """Processes with these words in their command line; a zombie has none, but holds its place: it counts."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if words in (entry / "cmdline").read_text(errors="replace").replace("\0", " "):
                    found.append(entry.name)
            except OSError:
                continue
    return found


def zombies_of_ours() -> set[str]:
    """Of the worker's processes, those that have become our children and wait for us."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "status").read_text(errors="replace")
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state == "Z" and int(parent) == os.getpid() and "\nUid:\t10002\t" in status:
                found.add(entry.name)
    return found


DAEMONS = {
    "in a session of its own": "setsid {nap} &",
    "forked twice": "(setsid sh -c '{nap} & exec {nap}' &)",
    "with its own subreaper": "python3 -c 'import ctypes, os; ctypes.CDLL(None).prctl(36, 1); os.fork() or "
    'os.fork() or os.system("setsid {nap}"); os.wait()\' &',
    "stopped": "{nap} & kill -STOP $!",
    "deaf to signals": "(trap '' TERM INT HUP QUIT; {nap}; {nap}; {nap}) &",
}


@pytest.mark.parametrize("daemon", DAEMONS.values(), ids=DAEMONS)
def test_nothing_outlives_the_end_of_all(wall: Wall, nap: str, daemon: str) -> None:
    before = zombies_of_ours()
    wall.run(f"{daemon.format(nap=nap)}\nsleep 0.2", timeout=20, on_output=lambda _: None)
    assert alive(nap)
    wall.end_all()
    assert alive(nap) == []
    assert zombies_of_ours() <= before


def test_what_a_dead_executor_leaves_behind_is_reaped(wall: Wall, nap: str) -> None:
    """Its orphans become the supervisor's children: those that live, and those that have ended unseen."""
    before = zombies_of_ours()
    executor = "$(ps -o ppid= -p $PPID)"
    command = f"(setsid {nap} &) (setsid sh -c 'sleep 0.3; echo' &) kill -9 {executor}; sleep 20"
    done = wall.run(command.replace(") ", ");"), timeout=30, on_output=lambda _: None)
    assert done.ended_by == "wall_lost"
    time.sleep(0.5)
    assert wall.run("true", timeout=20, on_output=lambda _: None).succeeded
    assert alive(nap) == []
    assert zombies_of_ours() <= before


def test_a_fork_bomb_is_ended_with_all_that_it_has_become(wall: Wall, nap: str) -> None:
    done = wall.run(f"b() {{ b & b & {nap}; }}; ulimit -u 300; b", timeout=1.5, on_output=lambda _: None)
    wall.end_all()
    assert not done.succeeded
    assert alive(nap) == []
    said = bytearray()
    assert wall.run("echo on", timeout=20, on_output=said.extend).succeeded
    assert said.endswith(b"on\n")


@pytest.fixture
def tight(wall: Wall, rooms: Rooms) -> Iterator[Wall]:
    """The same wall with little room, and without the end of the one that it is built upon."""
    disk, memory = Disk([rooms.workspace], quota=96 * MIB, reserve=0), Memory(reserve=memory_left() - 256 * MIB)
    bounded = BoundedWall(wall, disk, memory, output_bytes=MIB)
    yield bounded
    bounded._closed.set()


def test_who_fills_the_disk_is_ended_in_words_and_the_run_goes_on(
    tight: Wall, nap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WALL_DISK_STEP_BYTES", MIB)
    said = bytearray()
    filler = f"for i in $(seq 400); do head -c 1M /dev/zero > fill-$i; done; {nap}"
    done = tight.run(filler, timeout=60, on_output=said.extend)
    assert (done.exit_code, done.ended_by) == (None, "interrupt")
    assert "take up more than" in said.decode()
    assert alive(nap) == []
    with pytest.raises(WallError, match="The disk is full"):
        tight.write_file("more", b"x")
    assert tight.run("rm fill-*; sleep 1", timeout=60, on_output=lambda _: None).succeeded
    deadline = time.monotonic() + 20
    while tight._disk.is_full and time.monotonic() < deadline:  # type: ignore[attr-defined]
        time.sleep(0.1)
    tight.write_file("more", b"x")


# Eight of 160 MiB: no limit of one process would notice
HOGS = Attack(
    "memory without end",
    python("""
    import time
    for _ in range(8):
        if os.fork() == 0:
            held = bytearray(160 << 20)
            held[::4096] = b"x" * len(held[::4096])
            time.sleep(2)
            os._exit(0)
    if not any(os.wait()[1] for _ in range(8)):
        fired()
    """),
)


def test_who_takes_all_memory_is_ended_in_words_and_the_run_goes_on(tight: Wall, planted: dict[str, str]) -> None:
    outcome = attempt(tight, HOGS, planted)
    assert not outcome.succeeded
    assert "Memory is nearly used up" in outcome.output
    assert tight.run("true", timeout=20, on_output=lambda _: None).succeeded


def test_memory_can_be_taken_as_long_as_there_is_enough(wall: Wall, planted: dict[str, str]) -> None:
    must_work(attempt(wall, HOGS, planted), HOGS)


def test_two_gigabytes_of_output_are_cut_and_cost_the_supervisor_no_memory(tight: Wall) -> None:
    said, held = bytearray(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = tight.run("yes | head -c 2G; exit 3", timeout=60, on_output=said.extend)
    assert done.exit_code == 3
    assert said.endswith(b"[Output beyond 1 MiB is dropped.]\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held < 64 * 1024


def test_a_memory_file_system_has_an_end(wall: Wall) -> None:
    if wall.backend != "bwrap":
        pytest.skip("there is none of its own without mounts")
    said = bytearray()
    wall.run("df -B1 --output=size /tmp /dev/shm | tail -n +2", timeout=20, on_output=said.extend)
    assert [int(size) for size in said.split()] == [limits.WALL_TEMPORARY_BYTES] * 2
