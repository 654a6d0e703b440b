"""Work that is saved in one clone and read back into another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.launch import open_rooms
from sandbox_task.workspace.repository import Repository
from sandpiper.errors import RunError
from tests.unit.sandbox.clones import cloned, do, spec
from tests.unit.sandbox.git_server import TOKEN

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from sandpiper.models.spec import RunSpec
    from tests.unit.sandbox.git_server import GitServer

FILES = {"a.txt": "".join(f"line {n}\n" for n in range(3000)), "gone": "x\n", "tool": "#!/bin/sh\n", "src/b": "b\n"}
WORK = """sed -i "s|line 7$|seven|" a.txt; rm gone; chmod +x tool; printf "a\\0b" > src/bin
ln -s nowhere link; mkdir -p n; echo n > n/n"""


def again(open_dir: Path, spec: RunSpec, at: str | None) -> Repository:
    return Repository.clone(spec, open_rooms(open_dir / "second", 10002), token=TOKEN, at=at)


def test_saved_work_is_the_same_in_a_fresh_clone(
    git_server: GitServer, rooms: Rooms, wall: Wall, open_dir: Path
) -> None:
    url = git_server.create("r", FILES)
    first = cloned(rooms, wall, spec(url))
    do(wall, WORK)
    tree = first.take_tree(wall)
    first.save_tree(tree, open_dir / "work")
    git_server.push("r", {"a.txt": "moved on\n"})
    second = again(open_dir, spec(url), first.base_commit)
    second.load_trees([open_dir / "work"], tree)
    other = put_up_wall(wall.backend, second.rooms, tools=None, worker_uid=10002)
    try:
        second.deliver(other)
        second.restore(other, present=second.base_tree, wanted=tree)
        assert second.take_tree(other) == tree
        assert (
            do(other, "sed -n 8p a.txt; test -x tool; readlink link; ls gone 2>/dev/null || true") == "seven\nnowhere\n"
        )
    finally:
        other.close()


def test_what_is_saved_is_as_small_as_the_change(
    git_server: GitServer, rooms: Rooms, wall: Wall, open_dir: Path
) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES)))
    do(wall, "echo more >> a.txt")
    repository.save_tree(repository.take_tree(wall), open_dir / "work")
    assert (open_dir / "work").stat().st_size < 500


def test_work_in_an_empty_repository_can_be_saved(
    git_server: GitServer, rooms: Rooms, wall: Wall, open_dir: Path
) -> None:
    url = git_server.create("r")
    first = cloned(rooms, wall, spec(url))
    do(wall, "echo n > new; mkdir d; echo m > d/m")
    tree = first.take_tree(wall)
    first.save_tree(tree, open_dir / "work")
    second = again(open_dir, spec(url), first.base_commit)
    second.load_trees([open_dir / "work"], tree)
    assert second.show(tree, "d/m") == b"m\n"


def test_work_that_changed_nothing_can_be_saved(git_server: GitServer, rooms: Rooms, open_dir: Path) -> None:
    url = git_server.create("r", FILES)
    first = Repository.clone(spec(url), rooms, token=TOKEN)
    first.save_tree(first.base_tree, open_dir / "work")
    second = again(open_dir, spec(url), first.base_commit)
    second.load_trees([open_dir / "work"], first.base_tree)


def test_narrowed_work_can_be_saved(git_server: GitServer, rooms: Rooms, wall: Wall, open_dir: Path) -> None:
    url = git_server.create("r", FILES)
    git_server.shell("r", "mkdir lib; head -c 1500000 /dev/urandom > lib/large")
    first = cloned(rooms, wall, spec(url, paths=("src",)))
    do(wall, "echo more >> src/b")
    tree = first.take_tree(wall)
    first.save_tree(tree, open_dir / "work")
    second = again(open_dir, spec(url, paths=("src",)), first.base_commit)
    second.load_trees([open_dir / "work"], tree)
    assert second.show(tree, "src/b") == b"b\nmore\n"


@pytest.mark.parametrize("damage", ["cut", "flipped", "other"])
def test_damaged_work_is_not_read_back(
    git_server: GitServer, rooms: Rooms, wall: Wall, open_dir: Path, damage: str
) -> None:
    url = git_server.create("r", FILES)
    first = cloned(rooms, wall, spec(url))
    do(wall, WORK)
    tree = first.take_tree(wall)
    first.save_tree(tree if damage != "other" else first.base_tree, open_dir / "work")
    data = bytearray((open_dir / "work").read_bytes())
    if damage == "flipped":
        data[len(data) // 2] ^= 0xFF
    (open_dir / "work").write_bytes(data[:-30] if damage == "cut" else data)
    second = again(open_dir, spec(url), first.base_commit)
    with pytest.raises(RunError, match="The saved work can't be read back"):
        second.load_trees([open_dir / "work"], tree)
