"""Stores where the run stands, beside the work: the newest state only."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.errors import Fenced

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.checkpoint import Checkpoint
    from sandbox_task.stopping import Stop

_LOOK_SECONDS = 0.5  # whether the attempt has been fenced meanwhile


class Saver:
    """A store that fails is tried again, with what is the newest by then; being fenced ends it, and the run's work."""

    def __init__(
        self,
        store: Callable[[Checkpoint], None],
        stop: Stop,
        *,
        on_trouble: Callable[[str], None],
        tidy: Callable[[], None] = lambda: None,
    ) -> None:
        self._store, self._tidy, self._stop, self._on_trouble = store, tidy, stop, on_trouble
        self._changed = threading.Condition()
        self._next: Checkpoint | None = None
        self._due = self._rests_until = 0.0
        self._put = self._taken = self._stored = 0  # how many; `_stored` is the number of the last that is
        self._closed = False
        self._thread = threading.Thread(target=self._save_all, name="saver", daemon=True)
        self._thread.start()

    def put(self, checkpoint: Checkpoint, *, urgent: bool = True) -> int:
        """What was put before and is not being stored yet never will be. Not urgent: not right after the last one.

        Returns its number, to wait for.
        """
        with self._changed:
            due = 0.0 if urgent else self._rests_until
            self._due = due if self._next is None else min(self._due, due)
            self._next, self._put = checkpoint, self._put + 1
            self._changed.notify_all()
            return self._put

    def wait(self, number: int, seconds: float) -> bool:
        """Whether this one, or a newer one, is stored by then."""
        with self._changed:
            self._changed.wait_for(lambda: self._stored >= number or self._is_over, seconds)
            return self._stored >= number

    def flush(self, seconds: float) -> bool:
        """Whether the newest is stored by then."""
        with self._changed:
            self._due = 0.0
            self._changed.notify_all()
        return self.wait(self._put, seconds)

    def close(self) -> None:
        """What is being stored is; what waits is not."""
        with self._changed:
            self._next, self._closed = None, True
            self._changed.notify_all()
        self._thread.join(limits.CHECKPOINT_WAIT_SECONDS)

    @property
    def _is_over(self) -> bool:
        return self._closed or self._stop.is_fenced

    def _save_all(self) -> None:
        while (checkpoint := self._take()) is not None:
            try:
                self._store(checkpoint)
            except Fenced:
                self._stop.request("fenced")
            except Exception as error:  # noqa: BLE001 - whatever the adapters raise, the next round may succeed
                self._on_trouble(f"The run's state could not be stored, trying again: {error!r}")
                self._put_back(checkpoint)
            else:
                self._note_stored()
                self._tidy_up()

    def _take(self) -> Checkpoint | None:
        """The newest, when it is due; None at the end."""
        with self._changed:
            while not self._is_over:
                left = self._due - time.monotonic()
                if self._next is not None and left <= 0:
                    taken, self._next, self._taken = self._next, None, self._put
                    return taken
                self._changed.wait(_LOOK_SECONDS if self._next is None else min(left, _LOOK_SECONDS))
            self._changed.notify_all()
            return None

    def _put_back(self, checkpoint: Checkpoint) -> None:
        with self._changed:
            self._due = time.monotonic() + limits.CHECKPOINT_RETRY_SECONDS
            if self._next is None and not self._closed:
                self._next = checkpoint

    def _tidy_up(self) -> None:
        try:
            self._tidy()
        except Exception as error:  # noqa: BLE001 - the next round deletes it, or the end of the run
            self._on_trouble(f"What is not needed any more could not be deleted: {error!r}")

    def _note_stored(self) -> None:
        with self._changed:
            self._stored = self._taken
            self._rests_until = time.monotonic() + limits.CHECKPOINT_PAUSE_SECONDS
            self._changed.notify_all()
