"""The whole workspace, carried from one sandbox to another. What is in it decides nothing outside of it."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest
import zstandard

from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.launch import open_rooms
from sandbox_task.isolation.wall import WallError
from sandbox_task.workspace import snapshot
from sandpiper.testing.fakes import FakeBlobs
from tests.unit.sandbox.clones import do

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sandbox_task.isolation.wall import Wall

KEY = "runs/r/checkpoints/1/000001-workspace.tar.zst"
MANY = """mkdir -p node_modules/pkg .venv/bin 'with space'; echo x > node_modules/pkg/index.js
ln -s ../../gone .venv/bin/py; printf 'a\\0b' > 'with space/bin'
chmod 700 'with space'; chmod +x node_modules/pkg/index.js; touch -d @1000 old"""
SHOW = """find . | sort; readlink .venv/bin/py; stat -c '%a %Y' 'with space' old node_modules/pkg/index.js | cut -c1-8
od -c 'with space/bin'"""


@pytest.fixture
def other(wall: Wall, open_dir: Path) -> Iterator[Wall]:
    """The next sandbox."""
    other = put_up_wall(wall.backend, open_rooms(open_dir / "second", 10002), tools=None, worker_uid=10002)
    yield other
    other.close()


@pytest.fixture
def blobs() -> FakeBlobs:
    return FakeBlobs()


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return zstandard.compress(plain.getvalue())


def member(name: str, *, link: str | None = None) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    if link is not None:
        info.type, info.linkname = tarfile.SYMTYPE, link
    return info


def test_every_file_is_there_again_in_the_next_sandbox(wall: Wall, other: Wall, blobs: FakeBlobs) -> None:
    do(wall, MANY)
    size = snapshot.store(wall, blobs, KEY)
    assert size > len(blobs.get(KEY))
    snapshot.restore(other, blobs, KEY)
    assert do(other, SHOW) == do(wall, SHOW)


def test_a_workspace_that_is_too_large_is_not_stored_at_all(wall: Wall, blobs: FakeBlobs) -> None:
    do(wall, "head -c 3000000 /dev/zero > zeros")
    with pytest.raises(snapshot.TooLarge, match="more than 1 MiB"):
        snapshot.store(wall, blobs, KEY, at_most=1024**2)
    assert blobs.bodies == {}
    assert do(wall, "echo still here") == "still here\n"


def test_what_grows_beyond_all_bounds_when_it_is_unpacked_is_refused(wall: Wall, blobs: FakeBlobs) -> None:
    blobs.put(KEY, packed((member("zeros"), bytes(3_000_000))), content_type="application/zstd")
    assert len(blobs.get(KEY)) < 10_000
    with pytest.raises(snapshot.TooLarge):
        snapshot.restore(wall, blobs, KEY, at_most=1024**2)


def test_a_hostile_archive_writes_nothing_outside_of_the_workspace(
    wall: Wall, blobs: FakeBlobs, open_dir: Path
) -> None:
    secret = open_dir / "sandbox" / "private" / "planted"
    hostile = [
        (member("../../private/planted"), b"x"),
        (member(str(secret)), b"x"),
        (member("out", link=str(secret.parent)), b""),
        (member("out/planted"), b"x"),
    ]
    blobs.put(KEY, packed(*hostile), content_type="application/zstd")
    with pytest.raises(WallError, match="carried over"):
        snapshot.restore(wall, blobs, KEY)
    assert not secret.exists()


def test_an_archive_that_is_cut_off_is_an_error_in_words(wall: Wall, other: Wall, blobs: FakeBlobs) -> None:
    do(wall, "head -c 3000000 /dev/urandom > random")
    snapshot.store(wall, blobs, KEY)
    blobs.put(KEY, blobs.get(KEY)[:-1_000_000], content_type="application/zstd")
    with pytest.raises(WallError, match="carried over"):
        snapshot.restore(other, blobs, KEY)


def test_an_archive_in_which_one_bit_is_another_is_an_error_in_words(wall: Wall, other: Wall, blobs: FakeBlobs) -> None:
    do(wall, "head -c 3000000 /dev/urandom > random")
    snapshot.store(wall, blobs, KEY)
    body = bytearray(blobs.get(KEY))
    body[1_500_000] ^= 1  # inside of what can't be compressed: unpacked it is as good as before
    blobs.put(KEY, bytes(body), content_type="application/zstd")
    with pytest.raises(WallError, match="damaged"):
        snapshot.restore(other, blobs, KEY)
