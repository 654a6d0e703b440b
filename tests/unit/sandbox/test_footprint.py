"""What may have changed in a workspace, told by its directories and, where they are few, its files."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from sandbox_task.workspace.footprint import Footprint
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def aged(root: Path) -> Footprint:
    """Taken when the last change is long enough ago to be told from the next."""
    deadline = time.monotonic() + 10
    while (footprint := Footprint.of(root)).look().change == "anything" and time.monotonic() < deadline:
        time.sleep(0.005)
    return footprint


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a/b/one", "a/two", "three", ".git/HEAD"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "empty").mkdir()
    return tmp_path


def replace(root: Path) -> None:
    (root / "new").write_text("y")
    (root / "new").rename(root / "three")


def set_back(root: Path) -> None:
    """The same size and date as before."""
    before = (root / "a" / "two").stat()
    (root / "a" / "two").write_text("y")
    os.utime(root / "a" / "two", ns=(before.st_atime_ns, before.st_mtime_ns))


def test_nothing_has_changed_when_nothing_was_done_or_only_in_the_own_git(root: Path) -> None:
    footprint = aged(root)
    (root / ".git" / "index").write_text("x")
    assert footprint.look().change == "nothing"


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("act", [set_back, lambda root: (root / "three").chmod(0o755)])
def test_contents_and_modes_of_files_are_contents(
    root: Path, act: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch, *, few: bool
) -> None:
    monkeypatch.setattr(limits, "FOOTPRINT_FILES", 100 if few else 1)
    footprint = aged(root)
    act(root)
    assert footprint.look().change == "contents"


@pytest.mark.parametrize(
    "act",
    [
        lambda root: (root / "a" / "b" / "new").write_text("x"),
        lambda root: (root / "empty" / "new").write_text("x"),
        lambda root: (root / "a" / "two").unlink(),
        lambda root: (root / "empty" / "sub").mkdir(),
        lambda root: (root / "empty").rename(root / "a" / "moved"),
        lambda root: (root / "empty").chmod(0o700),
        lambda root: (root / "a" / ".git").mkdir(),
        replace,
    ],
)
def test_another_set_of_files_is_anything(root: Path, act: Callable[[Path], None]) -> None:
    footprint = aged(root)
    act(root)
    assert footprint.look().change == "anything"


def test_a_change_right_before_is_not_told_from_one_right_after(root: Path) -> None:
    (root / "fresh").write_text("x")
    assert Footprint.of(root).look().change == "anything"


def test_of_too_many_directories_nothing_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FOOTPRINT_DIRECTORIES", 2)
    assert Footprint.of(root).look().change == "anything"


def test_files_that_have_changed_are_named_and_the_next_look_is_at_what_changed_since(root: Path) -> None:
    footprint = aged(root)
    set_back(root)
    look = footprint.look()
    assert look.files == ("a/two",)
    assert look.footprint is not None
    (root / "three").chmod(0o755)
    assert set(look.footprint.look().files or ()) == {"a/two", "three"}, "one was changed just before that look"
