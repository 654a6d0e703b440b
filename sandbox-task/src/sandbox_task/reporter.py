"""Where everything that happens in a run goes: into its event log, in order, and into its log file, in full."""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from sandbox_task.output import CommandOutput
from sandbox_task.words import Words
from sandpiper import limits
from sandpiper.errors import Fenced
from sandpiper.models.events import EventType, NewEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sandbox_task.logfile import Entry, LogFile
    from sandbox_task.model.port import Hear
    from sandbox_task.redaction import Redactor
    from sandbox_task.stopping import Stop
    from sandpiper.models.events import Event
    from sandpiper.ports import Runs

_RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
_CLOSE_SECONDS = 60.0


class _Queued(NamedTuple):
    """An event that is to be stored, and its line in the log file, if it has one."""

    event: NewEvent
    entry: Entry | None


class Reporter:
    """Events come from any thread and leave from one. An attempt that is fenced reports nothing more."""

    def __init__(self, runs: Runs, run_id: str, *, attempt: int, redactor: Redactor, log: LogFile, stop: Stop) -> None:
        self._runs, self._run_id, self._attempt = runs, run_id, attempt
        self._redactor, self._log, self._stop = redactor, log, stop
        self._lock = threading.RLock()
        self._stored = threading.Condition(self._lock)
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._closing = threading.Event()
        self._queue: list[_Queued] = []
        self._outputs: list[CommandOutput] = []
        self._turn = 0
        self._words: Words | None = None
        self._words_due = 0.0
        self._ended = False
        self.observers: list[Callable[[str, dict[str, Any]], None]] = []
        self._sender = threading.Thread(target=self._send_all, name="reporter", daemon=True)
        self._sender.start()

    def emit(self, type_: EventType, **data: Any) -> None:
        if type_ == "agent_turn_started":
            self._turn = int(data["turn"])
        clean = self._redactor.data(data)
        with self._lock:  # the same order in the log as in the log file
            self._enqueue(NewEvent(type=type_, data=clean), self._log.event(type_, clean))
        for observe in self.observers:
            observe(type_, clean)

    def note(self, text: str) -> None:
        """For the log only."""
        self._log.note(self._redactor.text(text))

    @contextmanager
    def output(self, **data: Any) -> Iterator[CommandOutput]:
        """The output of one command; `data` says in each tool_output event whose it is."""
        clean = self._redactor.data(data)
        output = CommandOutput(
            self._redactor,
            self._log,
            lambda part: self._enqueue(NewEvent(type="tool_output", data={**clean, **part})),
        )
        with self._lock:
            self._outputs.append(output)
        try:
            yield output
        finally:
            with self._lock:
                self._outputs.remove(output)
            output.close()

    @contextmanager
    def words(self) -> Iterator[Hear]:
        """What the model says in one reply; shown to those who follow the run now, and no event."""
        words = Words(self._redactor, self._turn)
        self._words, self._words_due = words, time.monotonic() + limits.WORDS_EVERY_SECONDS
        try:
            yield words.hear
        finally:
            words.close()
            self._words = None

    def flush(self) -> None:
        """Returns when everything that was emitted so far is stored, or never will be."""
        self._hurry.set()
        with self._stored:
            self._stored.wait_for(lambda: not self._queue or self._ended, _CLOSE_SECONDS)

    def close(self) -> None:
        self._closing.set()
        self._hurry.set()
        self._wake.set()
        self._sender.join(_CLOSE_SECONDS)

    def _enqueue(self, event: NewEvent, entry: Entry | None = None) -> None:
        with self._lock:
            self._queue.append(_Queued(event, entry))
        self._wake.set()

    def _send_all(self) -> None:
        try:
            while not self._stop.is_fenced and not (self._closing.is_set() and not self._queue):
                self._wake.wait(limits.FLUSH_SECONDS)
                self._wake.clear()
                for output in tuple(self._outputs):
                    output.flush_if_due()
                if self._queue:
                    self._send_queued()
                    self._pause()
                self._show_words()
        finally:
            with self._stored:
                self._ended = True
                self._stored.notify_all()

    def _send_queued(self) -> None:
        """What is there now; what comes meanwhile is for the next time, so that there is more of it."""
        for batch in itertools.batched(tuple(self._queue), limits.EVENTS_PER_TRANSACTION, strict=False):
            if not self._store(batch):
                return
            with self._stored:
                del self._queue[: len(batch)]
                self._stored.notify_all()

    def _pause(self) -> None:
        """An event that comes alone has left at once; those of a burst gather, unless somebody waits for them."""
        if not self._closing.is_set():
            self._hurry.wait(limits.EVENTS_EVERY_SECONDS)
            self._hurry.clear()

    def _store(self, batch: Sequence[_Queued]) -> bool:
        """Keeps trying: a store that is away for a while delays events and loses none."""
        for seconds in itertools.chain(_RETRY_SECONDS, itertools.repeat(_RETRY_SECONDS[-1])):
            try:
                stored = self._runs.append(self._run_id, [queued.event for queued in batch], attempt=self._attempt)
            except Fenced:
                self._stop.request("fenced")
            except Exception as error:  # noqa: BLE001 - whatever the store's adapter raises, the events are kept
                self._log.note(f"events could not be stored, trying again: {error!r}")
                time.sleep(seconds)
            else:
                self._number(batch, stored)
                return True
            if self._stop.is_fenced:
                return False
        raise AssertionError("repeats for ever")

    def _show_words(self) -> None:
        """A few times a second; a model that answers at once has nothing to show on the way."""
        words = self._words
        if words is None or time.monotonic() < self._words_due:
            return
        self._words_due = time.monotonic() + limits.WORDS_EVERY_SECONDS
        try:
            for piece in words.take():
                self._runs.show_words(self._run_id, piece, attempt=self._attempt)
        except Fenced:
            self._stop.request("fenced")
        except Exception as error:  # noqa: BLE001 - whatever the adapter raises: the words come again as an event
            self._log.note(f"words could not be shown: {error!r}")

    def _number(self, batch: Sequence[_Queued], stored: Sequence[Event]) -> None:
        for queued, event in zip(batch, stored, strict=True):
            if queued.entry:
                self._log.number(queued.entry, event.seq)
