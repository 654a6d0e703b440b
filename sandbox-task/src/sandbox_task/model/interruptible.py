"""A model call that ends at once when the run has to stop, however long the model would still think."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

from sandbox_task.model.port import Model, Reply, Request

if TYPE_CHECKING:
    from sandbox_task.stopping import Stop

_Outcome = Reply | BaseException | None


class InterruptibleModel:
    def __init__(self, model: Model, stop: Stop) -> None:
        self.name, self.context_tokens = model.name, model.context_tokens
        self._model, self._stop = model, stop

    def complete(self, request: Request) -> Reply:
        """Raises Stopped; the call that is given up goes on in its own thread and nobody hears of it."""
        self._stop.check()
        outcomes: SimpleQueue[_Outcome] = SimpleQueue()
        with self._stop.listening(lambda: outcomes.put(None)):
            threading.Thread(target=self._call, args=(request, outcomes), name="model", daemon=True).start()
            outcome = outcomes.get()
        if isinstance(outcome, Reply):
            return outcome
        if outcome is None:
            self._stop.check()
            raise AssertionError("woken without a reason")
        raise outcome

    def _call(self, request: Request, outcomes: SimpleQueue[_Outcome]) -> None:
        try:
            outcomes.put(self._model.complete(request))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            outcomes.put(error)
