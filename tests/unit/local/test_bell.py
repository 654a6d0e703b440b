"""The bell of the ECS agent, as ministack's launcher rings it."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from sandpiper_local.ecs_agent.bell import NAME, Bell
from sandpiper_local.ministack_launcher import ring, ringing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LONG = 60.0


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # the names of Unix sockets may not be long
    monkeypatch.setenv("SANDPIPER_ECS_BELL", NAME)
    return tmp_path


@pytest.fixture
def bell(place: Path) -> Iterator[Bell]:
    with Bell(place.joinpath(NAME).relative_to(place)) as bell:
        yield bell


def _after(seconds: float, act: Callable[[], object]) -> None:
    threading.Timer(seconds, act).start()


def _seconds_of_waiting(bell: Bell, others: list[int], at_most: float) -> float:
    began = time.monotonic()
    bell.wait(others, at_most)
    return time.monotonic() - began


def test_a_ring_ends_the_wait_and_what_ecs_answered_is_handed_on(bell: Bell) -> None:
    _after(0.05, lambda: ringing(lambda data: data)("task"))
    assert _seconds_of_waiting(bell, [], LONG) < LONG / 2
    assert ringing(lambda data: f"ran {data}")("task") == "ran task"


def test_a_ring_before_the_wait_is_not_lost(bell: Bell) -> None:
    ring()
    assert _seconds_of_waiting(bell, [], LONG) < LONG / 2


def test_many_rings_are_one_and_block_nobody(bell: Bell) -> None:
    for _ in range(2000):
        ring()
    bell.wait([], LONG)
    assert _seconds_of_waiting(bell, [], 0.05) >= 0.05


def test_nobody_has_to_hear_it() -> None:
    ring()


def test_a_signal_ends_the_wait(bell: Bell) -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        _after(0.05, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        assert _seconds_of_waiting(bell, [], LONG) < LONG / 2
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_whoever_else_has_something_to_say_ends_the_wait(bell: Bell) -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, b".")
        assert _seconds_of_waiting(bell, [reader], LONG) < LONG / 2
    finally:
        os.close(reader)
        os.close(writer)
