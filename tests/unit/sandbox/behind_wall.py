"""What the tests of the wall have in common."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
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
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z" and words in (entry / "cmdline").read_text(errors="replace").replace("\0", " "):
                    found.append(entry.name)
            except OSError:
                continue
    return found


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
