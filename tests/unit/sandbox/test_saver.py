"""The thread that stores where a run stands: the newest only, again if it fails, never after it was fenced."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from sandbox_task.agent.journal import Journal
from sandbox_task.checkpoint import Checkpoint
from sandbox_task.saving import Saver
from sandbox_task.stopping import Stop
from sandpiper import limits
from sandpiper.errors import Fenced

if TYPE_CHECKING:
    from collections.abc import Iterator


class Store:
    """Takes what it is given when it is `open`; fails first with each of `failures`."""

    def __init__(self) -> None:
        self.stored: list[str] = []
        self.open, self.busy = threading.Event(), threading.Event()
        self.failures: list[Exception] = []
        self.open.set()

    def __call__(self, checkpoint: Checkpoint) -> None:
        self.busy.set()
        self.open.wait(10)
        if self.failures:
            raise self.failures.pop(0)
        self.stored.append(checkpoint.tree)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def stop() -> Stop:
    return Stop()


@pytest.fixture
def saver(store: Store, stop: Stop) -> Iterator[Saver]:
    saver = Saver(store, stop, on_trouble=lambda _words: None)
    yield saver
    store.open.set()
    saver.close()


def state(tree: str) -> Checkpoint:
    return Checkpoint(reason="", base_commit=None, tree=tree, journal=Journal())


def test_only_the_newest_of_those_that_wait_is_stored(saver: Saver, store: Store) -> None:
    store.open.clear()
    saver.put(state("1"))
    store.busy.wait(10)
    numbers = [saver.put(state(tree)) for tree in ("2", "3", "4")]
    store.open.set()
    assert saver.wait(numbers[0], 10)
    assert store.stored == ["1", "4"]


def test_nobody_who_puts_waits_for_the_store(saver: Saver, store: Store) -> None:
    store.open.clear()
    number = saver.put(state("1"))
    assert not saver.wait(number, 0)


def test_one_that_is_not_urgent_waits_a_while_after_the_last_and_gives_way_to_an_urgent_one(
    saver: Saver, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_PAUSE_SECONDS", 60)
    assert saver.wait(saver.put(state("first"), urgent=False), 10)
    assert not saver.wait(saver.put(state("step"), urgent=False), 0.2)
    assert saver.wait(saver.put(state("reply")), 10)
    assert store.stored == ["first", "reply"]


def test_an_urgent_one_stays_urgent_when_a_newer_one_takes_its_place(
    saver: Saver, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_PAUSE_SECONDS", 60)
    store.open.clear()
    saver.put(state("1"))
    store.busy.wait(10)
    reply = saver.put(state("reply"))
    saver.put(state("step"), urgent=False)
    store.open.set()
    assert saver.wait(reply, 10)
    assert store.stored == ["1", "step"]


def test_a_store_that_fails_is_tried_again_with_the_newest(
    saver: Saver, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_RETRY_SECONDS", 0)
    store.failures = [ConnectionError("away"), TimeoutError("still away")]
    assert saver.wait(saver.put(state("1")), 10)
    assert store.stored == ["1"]


def test_being_fenced_stops_the_work_and_whoever_waits(saver: Saver, store: Store, stop: Stop) -> None:
    store.failures = [Fenced("another attempt")]
    assert not saver.wait(saver.put(state("1")), 10)
    assert stop.is_fenced
    saver.put(state("2"))
    assert not saver.flush(10)
    assert store.stored == []
