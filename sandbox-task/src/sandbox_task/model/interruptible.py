"""A model call that ends at once when the run has to stop, and in time, however long the model would still think."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from sandbox_task.model import failures
from sandbox_task.model.port import Hear, Model, Reply, Request, nobody

if TYPE_CHECKING:
    from sandbox_task.stopping import Stop

_Outcome = Reply | BaseException | None


def complete_in_time(model: Model, request: Request, stop: Stop, *, seconds: float, hear: Hear = nobody) -> Reply:
    """Raises Stopped, or TryFailed; a call that is given up goes on in its own thread and nobody hears of it."""
    stop.check()
    outcomes: SimpleQueue[_Outcome] = SimpleQueue()
    with stop.listening(lambda: outcomes.put(None)):
        threading.Thread(target=_call, args=(model, request, hear, outcomes), name="model", daemon=True).start()
        try:
            outcome = outcomes.get(timeout=seconds)
        except Empty:
            raise failures.too_late(seconds) from None
    if isinstance(outcome, Reply):
        return outcome
    if outcome is None:
        stop.check()
        raise AssertionError("woken without a reason")
    raise outcome


def _call(model: Model, request: Request, hear: Hear, outcomes: SimpleQueue[_Outcome]) -> None:
    try:
        outcomes.put(model.complete(request, hear))
    except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
        outcomes.put(error)
