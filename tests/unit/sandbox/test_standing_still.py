"""While A looks at the files nothing behind the wall moves, and afterwards everything goes on."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox_task.isolation.processes import Process
from tests.unit.sandbox.behind_wall import WITHOUT_FIRST_THREAD, Background, said, wait_for
from tests.unit.sandbox.clones import cloned, do, spec

if TYPE_CHECKING:
    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from tests.unit.sandbox.git_server import GitServer

# A family that works without a pause, in a session of its own and beyond its parent
BUSY = "setsid sh -c '(while :; do echo x >> grows; done) & (while :; do : > churn; rm churn; done)' & sleep 100"
# What is told by its first thread is told wrong
HEADLESS = f"setsid python3 -c '{WITHOUT_FIRST_THREAD}' : & sleep 100"


def size(rooms: Rooms) -> int:
    return (rooms.workspace / "grows").stat().st_size


@pytest.mark.parametrize("family", [BUSY, HEADLESS], ids=["busy", "without its first thread"])
def test_nothing_moves_while_it_stands_still_and_all_goes_on_afterwards(wall: Wall, rooms: Rooms, family: str) -> None:
    Background(wall, family)
    wait_for("the first line", Path(rooms.workspace / "grows"))
    with wall.standing_still():
        before = size(rooms)
        assert said(wall, "echo I am asked") == "I am asked\n"
        time.sleep(0.05)  # in which it would grow by thousands of lines
        assert size(rooms) == before
    deadline = time.monotonic() + 10
    while size(rooms) == before and time.monotonic() < deadline:
        time.sleep(0.001)
    assert size(rooms) > before
    wall.end_all()


def test_what_stands_still_can_be_ended(wall: Wall, rooms: Rooms) -> None:
    busy = Background(wall, BUSY)
    wait_for("the first line", Path(rooms.workspace / "grows"))
    with wall.standing_still():
        wall.end_all()
    assert busy.ended.wait(10)
    assert said(wall, "echo on") == "on\n"


def test_standing_still_disturbs_no_command_that_is_run_afterwards(wall: Wall) -> None:
    for number in range(3):
        with wall.standing_still():
            pass
        assert said(wall, f"echo {number}") == f"{number}\n"


# The second word goes through memory that is writable since the first: the kernel dates the file no more
THROUGH_MEMORY = """
import mmap, os, time
with open("a.txt", "r+b") as file:
    memory = mmap.mmap(file.fileno(), 0)
memory[:3] = b"two"
os.utime("a.txt", (0, 0))  # what was changed a moment ago is read again in any case
open("first", "w").close()
while not os.path.exists("go-on"):
    time.sleep(0.001)
memory[:3] = b"six"
os.rename("first", "second")
time.sleep(100)
"""


def test_what_is_published_is_what_is_there_though_a_file_was_changed_without_a_date(
    git_server: GitServer, wall: Wall, rooms: Rooms
) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", {"a.txt": "one\n"})))
    Background(wall, f"python3 - <<'PYTHON'\n{THROUGH_MEMORY}\nPYTHON")
    wait_for("the first word", rooms.workspace / "first")
    with wall.standing_still():
        kept = repository.take_tree(wall, refresh=False)
    assert repository.show(kept, "a.txt") == b"two\n"
    do(wall, "touch go-on")
    wait_for("the second word", rooms.workspace / "second")
    wall.end_all()
    assert repository.show(repository.take_tree(wall), "a.txt") == (rooms.workspace / "a.txt").read_bytes() == b"six\n"


# As a program is started, but the child takes its time: the kernel holds the parent meanwhile
HELD_BY_CHILD = """
import ctypes, os, platform, time
number, flags = 220 if platform.machine() == "aarch64" else 56, 0x4000 | 17
if ctypes.CDLL(None).syscall(number, flags, 0, 0, 0, 0) == 0:
    open("child", "w").close()
    time.sleep(100)
"""


def test_who_is_held_by_the_kernel_until_its_child_is_another_program_stands_still(wall: Wall, rooms: Rooms) -> None:
    Background(wall, f"setsid python3 - <<'PYTHON'\n{HELD_BY_CHILD}\nPYTHON")
    wait_for("the child", rooms.workspace / "child")
    with wall.standing_still():
        pass
    wall.end_all()


def test_who_is_held_by_the_kernel_in_the_middle_of_something_else_does_not_stand_still() -> None:
    with subprocess.Popen(["sleep", "100"]) as sleeper:
        is_still = Process(sleeper.pid, os.getpid(), os.getpgid(0), state="D", threads=1).is_still
        sleeper.kill()
    assert not is_still
