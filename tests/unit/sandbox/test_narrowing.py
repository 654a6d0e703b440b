"""`paths`: a part of the repository is worked on, and the commit has all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_task.workspace.narrowing import Narrowing
from sandpiper.errors import RunError
from tests.unit.sandbox.clones import cloned, do, spec

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from tests.unit.sandbox.git_server import GitServer

FILES = {"README": "r\n", "src/a": "a\n", "src/deep/b": "b\n", "lib/c": "c\n", "docs/deep/d": "d\n", "x [1]*/e": "e\n"}


def changes(repository: object, wall: Wall) -> set[tuple[str, str]]:
    tree = repository.take_tree(wall)  # type: ignore[attr-defined]
    return {(each.status, each.path) for each in repository.changes(repository.base_tree, tree)}  # type: ignore[attr-defined]


def test_only_the_paths_and_the_root_files_are_in_the_workspace(
    git_server: GitServer, rooms: Rooms, wall: Wall
) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES), paths=("src/", "./x [1]*")))
    assert do(wall, "find . -path ./.git -prune -o -type f -print | sort; git status --porcelain") == (
        "./README\n./src/a\n./src/deep/b\n./x [1]*/e\n"
    )
    assert repository.take_tree(wall) == repository.base_tree


def test_changes_and_deletions_inside_are_taken_and_the_rest_stays(
    git_server: GitServer, rooms: Rooms, wall: Wall
) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES), paths=("src",)))
    do(wall, "rm -r src/deep; echo more >> src/a; echo n > src/new; rm README")
    assert changes(repository, wall) == {("D", "src/deep/b"), ("M", "src/a"), ("A", "src/new"), ("D", "README")}
    assert {"lib/c", "docs/deep/d"} <= set(repository.paths(repository.take_tree(wall)))


def test_a_new_file_outside_is_part_of_the_work(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES), paths=("src",)))
    do(wall, "mkdir -p tests lib; echo t > tests/t; echo n > lib/new")
    assert changes(repository, wall) == {("A", "tests/t"), ("A", "lib/new")}


def test_what_was_written_outside_and_removed_again_leaves_the_base_as_it_was(
    git_server: GitServer, rooms: Rooms, wall: Wall
) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES), paths=("src",)))
    do(wall, "mkdir lib; echo other > lib/c")
    assert changes(repository, wall) == {("M", "lib/c")}
    do(wall, "rm -r lib")
    assert repository.take_tree(wall) == repository.base_tree


def test_a_file_in_the_place_of_a_directory_outside_is_refused(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES), paths=("src",)))
    do(wall, "echo oops > lib")
    with pytest.raises(RunError, match="would delete lib/c, which is outside of `paths`"):
        repository.take_tree(wall)


def test_the_worker_can_not_delete_outside_by_its_own_git(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES), paths=("src",)))
    do(wall, "git rm -rq --cached --sparse lib docs; git update-index --no-skip-worktree lib/c || true")
    assert repository.take_tree(wall) == repository.base_tree


def test_the_contents_outside_are_not_downloaded(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    url = git_server.create("r", FILES)
    git_server.shell("r", "head -c 2000000 /dev/urandom > lib/huge; head -c 1500000 /dev/urandom > src/large")
    repository = cloned(rooms, wall, spec(url, paths=("src",)))
    packs = (repository.git.git_dir / "objects" / "pack").glob("*.pack")
    assert 1_500_000 < sum(pack.stat().st_size for pack in packs) < 1_900_000


def test_the_workspace_can_be_set_back_and_forth(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES), paths=("src",)))
    do(wall, "echo more >> src/a; rm src/deep/b; mkdir lib; echo n > lib/new")
    tree = repository.take_tree(wall)
    repository.restore(wall, present=tree, wanted=repository.base_tree)
    assert do(wall, "cat src/a src/deep/b; ls lib") == "a\nb\n"
    repository.restore(wall, present=repository.base_tree, wanted=tree)
    assert repository.take_tree(wall) == tree


def test_a_path_that_is_not_there_is_said_and_can_be_made(git_server: GitServer, rooms: Rooms, wall: Wall) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES), paths=("new/place",)))
    assert repository.warnings == ["The repository has nothing at these `paths`: new/place."]
    do(wall, "mkdir -p new/place; echo n > new/place/f")
    assert changes(repository, wall) == {("A", "new/place/f")}


def test_the_diff_of_narrowed_work_shows_the_work_only(
    git_server: GitServer, rooms: Rooms, wall: Wall, tmp_path: Path
) -> None:
    repository = cloned(rooms, wall, spec(git_server.create("r", FILES), paths=("src",)))
    do(wall, "echo more >> src/a")
    repository.write_diff(repository.take_tree(wall), tmp_path / "diff")
    assert (tmp_path / "diff").read_text(encoding="utf-8").count("diff --git") == 1


@pytest.mark.parametrize("path", ["../x", "/etc", "a/../../b", ".."])
def test_a_path_that_leads_out_of_the_repository_is_refused(path: str) -> None:
    with pytest.raises(RunError, match="is no path inside the repository"):
        Narrowing.to([path])


def test_the_root_narrows_nothing() -> None:
    assert not Narrowing.to(["src", "./"])
    assert Narrowing.to(["."]).holds("anything/at/all")
