from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.launch import Rooms, open_rooms
from tests.security.bare import NoWall
from tests.security.victim import supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox_task.isolation.wall import Wall
    from tests.security.attacks import Rights

WORKER = 10002


@pytest.fixture(scope="module")
def open_dir() -> Iterator[Path]:
    """A directory that another user can pass through; pytest's own are closed."""
    path = Path(tempfile.mkdtemp(prefix="sandpiper-attack-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def rooms(open_dir: Path) -> Rooms:
    return open_rooms(open_dir / "sandbox", WORKER)


@pytest.fixture(scope="module")
def other(open_dir: Path) -> Rooms:
    """The rooms of another run on the same machine, with the same worker."""
    return open_rooms(open_dir / "other", WORKER)


@pytest.fixture(scope="module")
def planted(open_dir: Path, rooms: Rooms, other: Rooms) -> Iterator[dict[str, str]]:
    shared = open_dir / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with (
        supervisor(rooms.private, shared) as known,
        tempfile.TemporaryDirectory(prefix=".sandpiper-attack-", dir=Path.home()) as home,
    ):
        for place in (other.workspace, other.home, shared, Path(home)):
            (place / "notes").write_text(known["secret"], encoding="utf-8")
            (place / "notes").chmod(0o666)
        yield {**known, "other": str(other.root), "home": home}


@pytest.fixture(scope="module", params=["bwrap", "uid"])
def wall(request: pytest.FixtureRequest, rooms: Rooms) -> Iterator[Wall]:
    """One for all attacks of a file: none of them may break it for the next."""
    if request.param == "uid" and os.geteuid() != 0:
        pytest.skip("only root may become another user")
    wall = put_up_wall(request.param, rooms, tools=None, worker_uid=WORKER)
    yield wall
    wall.close()


@pytest.fixture(scope="module")
def bare(open_dir: Path) -> Rooms:
    """Where attacks are tried without a wall, so that nothing of them is found by those behind one."""
    return open_rooms(open_dir / "bare", WORKER)


@pytest.fixture(scope="module")
def no_wall(bare: Rooms) -> Callable[[Rights], NoWall]:
    def with_rights(rights: Rights) -> NoWall:
        if rights == "worker" and os.geteuid() != 0:
            pytest.skip("only root may become another user")
        return NoWall(bare.workspace, uid=None if rights == "supervisor" else WORKER)

    return with_rights
