from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox_task.agent.tools.sessions import Sessions
from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.launch import Rooms, open_rooms
from tests.unit.sandbox.git_server import GitServer
from tests.unit.sandbox.recording_sink import RecordingSink
from tests.unit.sandbox.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox_task.isolation.wall import Wall


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A directory that another user can pass through; pytest's own are closed."""
    path = Path(tempfile.mkdtemp(prefix="sandpiper-test-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)  # a test may close a directory to its own user


@pytest.fixture
def rooms(open_dir: Path) -> Rooms:
    return open_rooms(open_dir / "sandbox", 10002)


@pytest.fixture(params=["bwrap", "uid"])
def wall(request: pytest.FixtureRequest, rooms: Rooms) -> Iterator[Wall]:
    if request.param == "uid" and os.geteuid() != 0:
        pytest.skip("only root may become another user")
    wall = put_up_wall(request.param, rooms, tools=None, worker_uid=10002)
    yield wall
    wall.close()


@pytest.fixture
def sink() -> Iterator[RecordingSink]:
    sink = RecordingSink(secrets=("very-secret-value",))
    yield sink
    sink.log.close()


@pytest.fixture
def sessions(wall: Wall, sink: RecordingSink, rooms: Rooms) -> Sessions:
    return Sessions.open(wall, sink, rooms.private)


@pytest.fixture
def git_server(tmp_path: Path) -> Iterator[GitServer]:
    with GitServer(tmp_path / "git") as server:
        yield server


@pytest.fixture
def world(open_dir: Path) -> World:
    return World(open_dir)
