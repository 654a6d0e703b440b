"""What is done outside of us is done once, whoever dies in between."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sandbox_task.intents import Intents
from sandpiper.errors import Fenced
from sandpiper.models.run import Run
from sandpiper.models.spec import RunSpec
from sandpiper.testing.fakes import FakeClock, FakeRuns

RUN_ID = "run-1"


class World:
    """A counter stands for what is outside."""

    def __init__(self) -> None:
        self.runs, self.done = FakeRuns(), 0
        now = datetime(2026, 1, 1, tzinfo=UTC)
        run = Run(
            run_id=RUN_ID,
            owner="ann",
            spec=RunSpec(task="t"),
            status="running",
            attempt=1,
            created_at=now,
            updated_at=now,
        )
        self.runs.create(run, [])

    def once(self, *, attempt: int = 1, fails: bool = False) -> Any:
        return Intents(self.runs, RUN_ID, attempt, FakeClock()).once("push", lambda: self._do(fails=fails), self._find)

    def _do(self, *, fails: bool) -> dict[str, int]:
        self.done += 1
        if fails:
            raise ConnectionError("cut off after it was done")
        return {"sha": self.done}

    def _find(self) -> dict[str, int] | None:
        return {"sha": self.done} if self.done else None

    def replace(self, **changes: Any) -> None:
        self.runs.change(RUN_ID, allowed=("running",), changes={"attempt": 2, **changes})


@pytest.fixture
def world() -> World:
    return World()


def test_it_is_done_and_its_result_noted(world: World) -> None:
    assert (world.once(), world.done) == ({"sha": 1}, 1)
    assert world.runs.get(RUN_ID).intents["push"].result == {"sha": 1}


def test_what_was_done_and_noted_is_not_done_again(world: World) -> None:
    world.once()
    world.replace()
    assert (world.once(attempt=2), world.done) == ({"sha": 1}, 1)


def test_what_was_done_and_not_noted_is_found_and_not_done_again(world: World) -> None:
    with pytest.raises(ConnectionError):
        world.once(fails=True)
    world.replace()
    assert (world.once(attempt=2), world.done) == ({"sha": 1}, 1)
    assert world.runs.get(RUN_ID).intents["push"].result == {"sha": 1}


def test_what_was_meant_and_not_done_is_done(world: World) -> None:
    with pytest.raises(ConnectionError):
        world.once(fails=True)
    world.done = 0
    world.replace()
    assert (world.once(attempt=2), world.done) == ({"sha": 1}, 1)


@pytest.mark.parametrize("changes", [{}, {"attempt": 1, "status": "cancelled"}])
def test_an_attempt_that_is_not_the_one_any_more_does_nothing(world: World, changes: dict[str, Any]) -> None:
    world.replace(**changes)
    with pytest.raises(Fenced):
        world.once()
    assert world.done == 0
