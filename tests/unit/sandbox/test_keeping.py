"""When the files are looked at and what is stored of it: while the model thinks, and less often where it does not."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.agent.journal import Journal
from sandbox_task.checkpoint import Checkpoint
from sandbox_task.keeping import Keeping
from sandbox_task.model.port import Text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Files:
    """A workspace behind a wall; each look at it finds another tree. Keeps what is put as a saver does."""

    root: Path
    looks: int = 0
    put_so_far: list[tuple[str, str]] = field(default_factory=list)
    urgent: list[bool] = field(default_factory=list)
    waited_for: list[int] = field(default_factory=list)

    def take_tree(self, _wall: object, *, refresh: bool) -> str:
        self.looks += 1
        return f"tree-{self.looks}"

    def take_contents(self, _tree: str, _files: object) -> None:
        """It is not so easy."""

    def put(self, state: Checkpoint, *, urgent: bool) -> int:
        self.urgent.append(urgent)
        self.put_so_far.append((state.journal.messages[-1].role, state.tree))
        return len(self.put_so_far)

    def wait(self, number: int, _seconds: float) -> bool:
        self.waited_for.append(number)
        return True

    def __getattr__(self, name: str) -> Any:
        return {
            "standing_still": contextlib.nullcontext,
            "rooms": SimpleNamespace(workspace=self.root),
            "close": lambda: None,
        }[name]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def keeping(files: Files) -> Iterator[Keeping]:
    world: Any = files
    kept = Keeping(world, world, world, draft, on_trouble=pytest.fail, tree="tree-0")
    kept.stepped(touched=True)
    yield kept
    kept.close()


def draft(journal: Journal, tree: str) -> Checkpoint:
    return Checkpoint(reason="", base_commit=None, tree=tree, journal=journal)


def turn(keeping: Keeping, *, seconds: float, touched: bool = True) -> None:
    asked = Journal().with_words(Text(text="Go on."))
    keeping.asking(asked)
    keeping.replied(asked.with_reply((Text(text="Well."),)), seconds)
    keeping.stepped(touched=touched)


def test_while_a_model_thinks_its_files_are_kept_and_its_reply_with_the_same_tree(
    keeping: Keeping, files: Files
) -> None:
    turn(keeping, seconds=1.0)
    assert (files.looks, files.put_so_far) == (1, [("user", "tree-1"), ("assistant", "tree-1")])
    assert (files.urgent, files.waited_for) == ([True, True], [])
    turn(keeping, seconds=1.0)
    assert files.waited_for == [2]


def test_replies_that_come_at_once_are_kept_with_their_files_and_nobody_waits_for_that(
    keeping: Keeping, files: Files
) -> None:
    for _ in range(3):
        turn(keeping, seconds=0.0)
    assert (files.looks, files.put_so_far[-2:]) == (3, [("user", "tree-3"), ("assistant", "tree-3")])
    assert (files.urgent, files.waited_for) == ([True, False, False, False, False, False], [])


def test_files_that_no_call_has_touched_are_not_looked_at_again(keeping: Keeping, files: Files) -> None:
    turn(keeping, seconds=1.0, touched=False)
    turn(keeping, seconds=1.0, touched=False)
    assert files.looks == 1
    assert len(files.put_so_far) == 4
