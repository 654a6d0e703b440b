"""One reply, whatever it takes within reason: the same model again, then those that stand in for it, then the truth.

| what happens | what is done |
|---|---|
| 408, 409, 424, 425, 429, 5xx, 529; no connection, no answer in time, a cut stream | again, after a pause |
| as often as is allowed, or the time of the turn is up | the fallback model; it goes on for a while |
| nobody left | ModelUnavailable: the run waits |
| 400, 401, 403, 404 | the error in words; of a fallback model: the next one |
| 413, a prompt that is too long | a reply with `stop: too_long` (from the adapter) |
| the run has to stop | Stopped, at once |
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox_task.model.interruptible import complete_in_time
from sandbox_task.model.port import ModelUnavailable, TryFailed, TurnUsage, nobody
from sandbox_task.stopping import Stop
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sandbox_task.agent.ports import Sink
    from sandbox_task.model.catalogue import PriceList
    from sandbox_task.model.port import Hear, Model, Reply, Request


@dataclass(frozen=True)
class Time:
    """How time passes, and how chance decides: a number from 0 to 1."""

    now: Callable[[], float] = time.monotonic
    wait: Callable[[Stop, float], object] = Stop.wait
    chance: Callable[[], float] = random.random


@dataclass
class _Turn:
    """What is left for one reply, and what it has cost so far."""

    ends_at: float
    spent: TurnUsage = field(default_factory=TurnUsage)
    last: str = ""

    def note(self, error: TryFailed) -> None:
        self.spent = self.spent.plus(error.usage)
        self.last = error.message


class ResilientModel:
    """`models` are the one that was asked for and its stand-ins, best first."""

    def __init__(
        self, models: Sequence[Model], *, prices: PriceList, sink: Sink, stop: Stop, time_: Time | None = None
    ) -> None:
        self.name, self.context_tokens = models[0].name, models[0].context_tokens
        self._models, self._prices = models, prices
        self._sink, self._stop, self._time = sink, stop, time_ or Time()
        self._place, self._back_at = 0, 0.0
        self._unpriced: set[str] = set()

    def complete(self, request: Request, _hear: Hear = nobody) -> Reply:
        """The sink hears what is said. Raises Stopped, ModelUnavailable, or TryFailed for what no repetition mends."""
        turn = _Turn(ends_at=self._time.now() + limits.MODEL_TURN_SECONDS)
        if self._time.now() >= self._back_at:
            self._place = 0
        while True:
            reply = self._ask(self._models[self._place], request, turn)
            if reply is not None:
                return reply.model_copy(update={"usage": reply.usage.plus(turn.spent)})
            self._step_down(turn)

    def _ask(self, model: Model, request: Request, turn: _Turn) -> Reply | None:
        """None when this model has had its chances."""
        self._warn_if_unpriced(model)
        for number in range(1, limits.MODEL_TRIES + 1):
            try:
                return self._try(model, request, turn)
            except TryFailed as error:
                turn.note(error)
                if not error.retryable and self._place == 0:
                    error.usage = turn.spent
                    raise
                pause = self._pause(number, error, turn) if error.retryable else None
                self._tell(model, error, number, pause)
            if pause is None:
                return None
            self._time.wait(self._stop, pause)
        return None

    def _try(self, model: Model, request: Request, turn: _Turn) -> Reply:
        """What is said in a try that fails is shown, too; the next begins anew."""
        with self._sink.words() as hear:
            return complete_in_time(model, request, self._stop, seconds=self._seconds_for_one(turn), hear=hear)

    def _seconds_for_one(self, turn: _Turn) -> float:
        return max(0.0, min(limits.MODEL_TRY_SECONDS, turn.ends_at - self._time.now()))

    def _pause(self, number: int, error: TryFailed, turn: _Turn) -> float | None:
        """Seconds until the next try; None if there is none."""
        if error.retry_after is None:
            longest = min(limits.MODEL_PAUSE_SECONDS * 2 ** (number - 1), limits.MODEL_MAX_PAUSE_SECONDS)
            pause = longest * (1 + self._time.chance()) / 2
        else:
            pause = min(error.retry_after, limits.MODEL_MAX_PAUSE_SECONDS)
        in_time = self._time.now() + pause < turn.ends_at
        return pause if number < limits.MODEL_TRIES and in_time else None

    def _tell(self, model: Model, error: TryFailed, number: int, pause: float | None) -> None:
        self._sink.emit(
            "agent_turn_failed",
            **{"try": number},
            model=model.name,
            error=error.message,
            retryable=error.retryable,
            retry_in_seconds=None if pause is None else round(pause, 2),
        )

    def _step_down(self, turn: _Turn) -> None:
        """To the next model, which keeps the work for a while: coming back costs a full prompt each time."""
        tired = self._models[self._place].name
        if self._place + 1 == len(self._models) or self._time.now() >= turn.ends_at:
            self._back_at = 0.0
            raise ModelUnavailable(f"{self.name} does not answer, so the run waits. {turn.last}", usage=turn.spent)
        self._place += 1
        self._back_at = self._time.now() + limits.MODEL_FALLBACK_SECONDS
        model = self._models[self._place].name
        message = f"{tired} does not answer; {model} goes on with the work. {turn.last}"
        self._sink.emit("warning", message=message, model=model, instead_of=tired)

    def _warn_if_unpriced(self, model: Model) -> None:
        if not self._prices.knows(model.name) and model.name not in self._unpriced:
            self._unpriced.add(model.name)
            self._sink.emit("warning", message=f"No price is known for {model.name}: its cost is counted as 0.")
