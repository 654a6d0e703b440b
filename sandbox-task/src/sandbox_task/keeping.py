"""Keeps where the run stands after each step: files are looked at while the model thinks, and stored beside the work.

A tree belongs to one state of the journal. The next call waits until the files have been looked at, never until they
are stored; the next request waits until the reply before it is stored, if that was worth anything.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox_task.isolation.wall import WallError
from sandbox_task.workspace.footprint import Footprint, Look
from sandbox_task.workspace.git import GitError
from sandpiper import limits
from sandpiper.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.agent.journal import Journal
    from sandbox_task.checkpoint import Checkpoint
    from sandbox_task.isolation.wall import Wall
    from sandbox_task.saving import Saver
    from sandbox_task.workspace.repository import Repository


@dataclass
class Keeping:
    """`draft` makes a checkpoint of a journal, a tree and everything else that is known.

    `tree` is None while the files can't be taken as they are; then nothing is stored.
    """

    repository: Repository
    wall: Wall
    saver: Saver
    draft: Callable[[Journal, str], Checkpoint]
    on_trouble: Callable[[str], None]
    tree: str | None
    _touched: bool = field(default=False, init=False)  # the files may be others than the tree's
    _footprint: Footprint | None = field(default=None, init=False)
    _looking: Future[None] | None = field(default=None, init=False)
    _last: Checkpoint | None = field(default=None, init=False)
    _owed: int | None = field(default=None, init=False)
    _hurries: bool = field(default=True, init=False)  # replies take their time, and there is time to store each state
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="keeping"), init=False
    )

    def stepped(self, *, touched: bool) -> None:
        """What a reply asked for is done. `touched`: files may have changed by that."""
        self._touched |= touched

    def asking(self, journal: Journal) -> None:
        """The model is about to be asked: by now its last reply must not get lost any more."""
        if self._owed is not None and not self.saver.wait(self._owed, limits.CHECKPOINT_WAIT_SECONDS):
            self.on_trouble("The run's state could not be stored for a while; the work goes on.")
        self._owed = None
        self._looking = self._pool.submit(self._keep_meanwhile, self.draft(journal, ""))

    def replied(self, journal: Journal, seconds: float) -> None:
        """The model took so long to answer; what it asks for is about to be done."""
        self.settle()
        if self.tree is not None:
            self._hurries = seconds >= limits.REPLY_WORTH_SECONDS
            ticket = self.keep(self.draft(journal, self.tree), urgent=self._hurries)
            self._owed = ticket if self._hurries else None

    def keep(self, state: Checkpoint, *, urgent: bool = True) -> int:
        """Its number, to wait for."""
        self._last = state
        return self.saver.put(state, urgent=urgent)

    def settle(self) -> None:
        """Nothing looks at the files any more when this returns."""
        if self._looking is not None:
            self._looking.result()
            self._looking = None

    def hand_over(self) -> None:
        """What is not stored yet is now."""
        self.settle()
        if self._last is not None:
            self.keep(self._last)
            self.saver.flush(limits.CHECKPOINT_WAIT_SECONDS)

    def close(self) -> None:
        self.settle()
        self._pool.shutdown()
        self.saver.close()

    def _keep_meanwhile(self, state: Checkpoint) -> None:
        """While the model thinks."""
        self._look()
        if self.tree is not None:
            self.keep(state.model_copy(update={"tree": self.tree}), urgent=self._hurries)

    def _look(self) -> None:
        """The tree is that of the files as they are now."""
        if not self._touched and self.tree is not None:
            return
        try:
            self.tree = self._take()
            self._touched = False
        except (RunError, WallError, GitError) as error:
            self.tree = self._footprint = None
            self.on_trouble(f"The files can't be kept as they are now: {error}")

    def _take(self) -> str:
        with self.wall.standing_still():
            before = self._footprint
            look = before.look() if before is not None and self.tree is not None else Look("anything")
            tree = self._tree_by(look)
            if tree is None:
                tree = self.repository.take_tree(self.wall, refresh=before is None)
                look = Look("anything")
            self._footprint = look.footprint or Footprint.of(self.repository.rooms.workspace)
            return tree

    def _tree_by(self, look: Look) -> str | None:
        """None: by what was seen alone it can't be told."""
        if look.change == "nothing":
            return self.tree
        return self.repository.take_contents(str(self.tree), look.files) if look.change == "contents" else None
