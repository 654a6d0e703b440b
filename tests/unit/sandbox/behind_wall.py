"""What the tests of the wall have in common."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.proc import is_alive, pids
from tests.proc import said as said_of

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.isolation.wall import Completed, Wall

NAP = f"sleep 31.{os.getpid()}"  # tests of another process must not be mistaken for ours
OTHER_NAP = f"sleep 32.{os.getpid()}"
# It has what its argument says done by a child, and writes to `grows` itself, without the thread that it began with:
# /proc shows it as one that has ended. No apostrophes: it is quoted by them.
WITHOUT_FIRST_THREAD = """
import ctypes, os, platform, subprocess, sys, threading
def work():
    subprocess.Popen(["sh", "-c", sys.argv[1] + "; true"])
    while True:
        with open("grows", "a") as file:
            file.write("x")
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall(93 if platform.machine() == "aarch64" else 60, 0)
"""


def said(wall: Wall, command: str, *, timeout: float = 30, cwd: str = ".") -> str:
    return outcome(wall, command, timeout=timeout, cwd=cwd)[1]


def outcome(wall: Wall, command: str, *, timeout: float = 30, cwd: str = ".") -> tuple[Completed, str]:
    output = bytearray()
    completed = wall.run(command, timeout=timeout, cwd=cwd, on_output=output.extend)
    return completed, output.decode()


def processes_with(words: str) -> list[str]:
    return [pid for pid in pids() if int(pid) != os.getpid() and _is_alive_with(words.encode(), pid)]


def _is_alive_with(words: bytes, pid: str) -> bool:
    return words in said_of(pid, "cmdline").replace(b"\0", b" ") and is_alive(pid)


def wait_for(condition: object, path: Path) -> None:
    for _ in range(1000):
        if path.exists():
            return
        time.sleep(0.01)
    pytest.fail(f"{condition} did not happen")


class Background:
    """A command in the background, with what it said and whether its end was told."""

    def __init__(self, wall: Wall, command: str) -> None:
        self.output, self.ended = bytearray(), threading.Event()
        self.process = wall.start(command, on_output=self.output.extend, on_end=self.ended.set)
