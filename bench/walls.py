"""What a wall costs: once per run to put it up, and for each command over a plain subprocess, by turns."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_task.isolation.carrying import packed
from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.confinement.filter import base_filter
from sandbox_task.isolation.egress.gateway import Gateway
from sandbox_task.isolation.egress.server import Server
from sandbox_task.isolation.launch import Rooms, open_rooms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.report import Report
    from sandbox_task.isolation.wall import Wall
    from sandbox_task.settings import Backend

WORKER = 10002
COMMANDS, WALLS = 100, 7
ADDED_MS, SET_UP_MS = 3, 60


def run(report: Report) -> None:
    place = Path(tempfile.mkdtemp(prefix="sandpiper-bench-"))
    place.chmod(0o711)
    try:
        rooms = open_rooms(place / "rooms", WORKER)
        for backend in _possible():
            _set_up(report, backend, rooms)
            _commands(report, backend, rooms)
    finally:
        shutil.rmtree(place)


def _possible() -> list[Backend]:
    bwrap: list[Backend] = ["bwrap"] if shutil.which("bwrap") else []
    uid: list[Backend] = ["uid"] if os.geteuid() == 0 else []
    return bwrap + uid


def _set_up(report: Report, backend: Backend, rooms: Rooms) -> None:
    """Until a first command has run behind it; the baseline is an interpreter that starts and ends."""
    walls, interpreters = [], []
    for _ in range(WALLS):
        interpreters.append(_ms(lambda: subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)))
        packed.cache_clear()  # a run puts up one wall, and that is its first
        base_filter.cache_clear()
        with _gateway() as gateway:
            began = time.perf_counter()
            wall = _put_up(backend, rooms, gateway)
            walls.append((time.perf_counter() - began) * 1000)
            wall.close()
    measured, baseline = statistics.median(walls), statistics.median(interpreters)
    report.add(
        f"putting up the wall `{backend}`, with its ways out",
        measured=f"{measured:.0f} ms",
        baseline=f"{baseline:.0f} ms, starting Python",
        ratio=f"{measured / baseline:.1f}×",
        goal=f"≤ {SET_UP_MS} ms",
        met=measured <= SET_UP_MS,
    )


def _commands(report: Report, backend: Backend, rooms: Rooms) -> None:
    wall = _put_up(backend, rooms)
    behind, plain = [], []
    for _ in range(COMMANDS):
        behind.append(_ms(lambda: wall.run("true", timeout=60, on_output=_ignore)))
        plain.append(_ms(lambda: subprocess.run(["/bin/bash", "-c", "true"], capture_output=True, check=True)))
    wall.close()
    measured, baseline = statistics.median(behind), statistics.median(plain)
    report.add(
        f"a command behind `{backend}`, added",
        measured=f"{measured - baseline:.1f} ms",
        baseline=f"{baseline:.1f} ms, a plain subprocess",
        ratio=f"{measured / baseline:.2f}×",
        goal=f"≤ {ADDED_MS} ms",
        met=measured - baseline <= ADDED_MS,
    )


@contextmanager
def _gateway() -> Iterator[Gateway]:
    """With both doors, as every run has it."""
    git = Server("git", lambda _connection: None, at_most=1, when_full=b"")
    gateway = Gateway(on_refusal=lambda _host, _reason: None, git=git)
    yield gateway
    gateway.close()


def _put_up(backend: Backend, rooms: Rooms, gateway: Gateway | None = None) -> Wall:
    return put_up_wall(backend, rooms, tools=None, worker_uid=WORKER, gateway=gateway)


def _ms(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _ignore(_data: bytes) -> None:
    """Output that nobody needs."""
