"""Retries, pauses, stand-ins and giving up, with a clock that nobody waits for."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.model.catalogue import PriceList
from sandbox_task.model.failures import broken, refused, retry_after, too_late
from sandbox_task.model.port import Hear, ModelUnavailable, Reply, Request, Text, TryFailed, TurnUsage, nobody
from sandbox_task.model.resilient import ResilientModel, Time
from sandbox_task.stopping import Stop, Stopped
from sandpiper import limits
from tests.unit.sandbox.models import request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandpiper.models.events import EventType

Outcome = Reply | TryFailed
HI = Reply(blocks=(Text(text="Hi."),), stop="end", usage=TurnUsage(input_tokens=5, cost_usd=0.5))
BUSY = refused(529, "busy", "m")


class Script:
    """Gives its outcomes one after the other, the last for ever."""

    context_tokens = 1000

    def __init__(self, *outcomes: Outcome | Callable[[], Outcome], name: str = "claude-opus-5-5") -> None:
        self.name, self.calls = name, 0
        self._outcomes = outcomes

    def complete(self, _request: Request, hear: Hear = nobody) -> Reply:
        hear("text", f"try {self.calls + 1}")
        outcome = self._outcomes[min(self.calls, len(self._outcomes) - 1)]
        self.calls += 1
        said = outcome() if callable(outcome) else outcome
        if isinstance(said, TryFailed):
            raise said
        return said


class World:
    def __init__(self) -> None:
        self.stop = Stop()
        self.clock, self.waits = 0.0, list[float]()
        self.heard: list[list[str]] = []
        self.events: list[tuple[str, dict[str, Any]]] = []

    def emit(self, type_: EventType, **data: Any) -> None:
        self.events.append((type_, data))

    @contextmanager
    def words(self) -> Iterator[Hear]:
        self.heard.append([])
        yield lambda _voice, piece: self.heard[-1].append(piece)

    def output(self, **_data: Any) -> Any:
        raise AssertionError("a model has no output")

    def wait(self, _stop: Stop, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock += seconds

    def model(self, *models: Script, prices: PriceList | None = None) -> ResilientModel:
        time_ = Time(now=lambda: self.clock, wait=self.wait, chance=lambda: 1.0)
        return ResilientModel(models, prices=prices or PriceList(), sink=self, stop=self.stop, time_=time_)

    def of(self, type_: str) -> list[dict[str, Any]]:
        return [data for kind, data in self.events if kind == type_]


@pytest.fixture
def world() -> World:
    return World()


def test_a_reply_at_once_is_handed_on(world: World) -> None:
    assert world.model(Script(HI)).complete(request()) == HI
    assert (world.waits, world.events) == ([], [])


def test_what_may_pass_is_tried_again_with_growing_pauses(world: World) -> None:
    model = Script(BUSY, too_late(1), broken("cut"), HI)
    assert world.model(model).complete(request()).blocks == HI.blocks
    assert world.waits == [1, 2, 4]
    assert [(event["try"], event["retry_in_seconds"]) for event in world.of("agent_turn_failed")] == [
        (1, 1), (2, 2), (3, 4),
    ]  # fmt: skip
    assert "overloaded or failing (529): busy" in world.of("agent_turn_failed")[0]["error"]


def test_every_try_is_heard_by_itself(world: World) -> None:
    world.model(Script(BUSY, HI)).complete(request())
    assert world.heard == [["try 1"], ["try 2"]]


def test_chance_takes_up_to_half_of_a_pause(world: World) -> None:
    resilient = world.model(Script(BUSY, HI))
    resilient._time = Time(now=lambda: world.clock, wait=world.wait, chance=lambda: 0.0)
    resilient.complete(request())
    assert world.waits == [0.5]


@pytest.mark.parametrize(("asked", "waited"), [(0, 0), (7, 7), (3600, limits.MODEL_MAX_PAUSE_SECONDS)])
def test_the_server_says_when_to_come_back_within_reason(world: World, asked: float, waited: float) -> None:
    world.model(Script(refused(429, "slow", "m", retry_after=asked), HI)).complete(request())
    assert world.waits == [waited]


def test_what_a_dropped_try_has_cost_is_counted(world: World) -> None:
    lost = broken("cut", TurnUsage(input_tokens=100, cost_usd=0.25))
    reply = world.model(Script(lost, HI)).complete(request())
    assert reply.usage == TurnUsage(input_tokens=105, cost_usd=0.75)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_what_stays_wrong_is_not_tried_again(world: World, status: int) -> None:
    model, stand_in = Script(refused(status, "no", "m")), Script(HI)
    with pytest.raises(TryFailed, match="no"):
        world.model(model, stand_in).complete(request())
    assert (model.calls, stand_in.calls) == (1, 0)


def test_the_cost_of_earlier_tries_is_in_the_error_that_ends_them(world: World) -> None:
    model = Script(broken("cut", TurnUsage(cost_usd=0.25)), refused(400, "no", "m"))
    with pytest.raises(TryFailed) as caught:
        world.model(model).complete(request())
    assert caught.value.usage.cost_usd == 0.25


def test_a_model_that_stays_away_is_stood_in_for_with_a_warning(world: World) -> None:
    away, stand_in = Script(BUSY), Script(HI, name="claude-sonnet-5-5")
    assert world.model(away, stand_in).complete(request()).blocks == HI.blocks
    assert away.calls == limits.MODEL_TRIES
    (warning,) = world.of("warning")
    assert (warning["instead_of"], warning["model"]) == ("claude-opus-5-5", "claude-sonnet-5-5")
    assert world.of("agent_turn_failed")[-1]["retry_in_seconds"] is None


def test_a_stand_in_keeps_the_work_for_a_while_and_then_the_first_is_asked_again(world: World) -> None:
    away, stand_in = Script(*[BUSY] * limits.MODEL_TRIES, HI), Script(HI, name="claude-sonnet-5-5")
    model = world.model(away, stand_in)
    model.complete(request())
    model.complete(request())
    assert (away.calls, stand_in.calls) == (limits.MODEL_TRIES, 2)
    world.clock += limits.MODEL_FALLBACK_SECONDS
    model.complete(request())
    assert (away.calls, stand_in.calls) == (limits.MODEL_TRIES + 1, 2)
    assert len(world.of("warning")) == 1


def test_when_nobody_answers_the_run_can_wait(world: World) -> None:
    lost = broken("cut", TurnUsage(cost_usd=0.1))
    with pytest.raises(ModelUnavailable, match=r"claude-opus-5-5 does not answer.*cut") as caught:
        world.model(Script(lost), Script(lost)).complete(request())
    assert caught.value.retryable
    assert caught.value.usage.cost_usd == pytest.approx(0.1 * 2 * limits.MODEL_TRIES)


def test_after_giving_up_the_first_model_is_asked_first_again(world: World) -> None:
    first = Script(*[BUSY] * limits.MODEL_TRIES, HI)
    model = world.model(first, Script(BUSY))
    with pytest.raises(ModelUnavailable):
        model.complete(request())
    assert model.complete(request()).blocks == HI.blocks


def test_a_stand_in_that_we_may_not_use_is_passed_over(world: World) -> None:
    last = Script(HI, name="claude-haiku-5-5")
    reply = world.model(Script(BUSY), Script(refused(403, "not yours", "m")), last).complete(request())
    assert (reply.blocks, last.calls) == (HI.blocks, 1)


def test_one_turn_takes_no_longer_than_it_may(world: World) -> None:
    def slow() -> TryFailed:
        world.clock += 700
        return too_late(700)

    with pytest.raises(ModelUnavailable):
        world.model(Script(slow), Script(slow)).complete(request())
    assert world.clock <= limits.MODEL_TURN_SECONDS + 700


def test_a_pause_ends_at_once_when_the_run_has_to_stop(world: World) -> None:
    class Ending(World):
        def wait(self, _stop: Stop, _seconds: float) -> None:
            self.stop.request("cancelled")

    ending, model = Ending(), Script(BUSY, HI)
    with pytest.raises(Stopped):
        ending.model(model).complete(request())
    assert model.calls == 1


def test_the_clock_that_is_used_by_default_wakes_when_the_run_has_to_stop() -> None:
    stop = Stop()
    stop.request("cancelled")
    assert Time().wait(stop, 3600)


def test_a_model_without_a_price_is_warned_of_once(world: World) -> None:
    model = world.model(Script(HI, name="acme.model-1"))
    model.complete(request())
    model.complete(request())
    assert [event["message"] for event in world.of("warning")] == [
        "No price is known for acme.model-1: its cost is counted as 0."
    ]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3), ("0.5", 0.5), ("-1", 0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("soon", None), ("", None)],
)
def test_both_forms_of_retry_after_are_read_and_nonsense_is_not(header: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": header}) == seconds
