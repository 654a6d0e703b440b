from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from sandbox_task.model.interruptible import complete_in_time
from sandbox_task.model.port import Hear, Reply, Request, TryFailed, nobody
from sandbox_task.stopping import Stop, Stopped
from sandpiper.errors import RunError
from tests.unit.sandbox.models import request

if TYPE_CHECKING:
    from collections.abc import Callable


class Calling:
    name = "x"
    context_tokens = 1000

    def __init__(self, call: Callable[[], Reply]) -> None:
        self._call = call

    def complete(self, request: Request, _hear: Hear = nobody) -> Reply:
        return self._call()


def fails() -> Reply:
    raise RunError("model_request_error", "no")


def test_a_call_raises_what_the_model_raises() -> None:
    with pytest.raises(RunError, match="no"):
        complete_in_time(Calling(fails), request(), Stop(), seconds=60)


def test_a_call_is_not_begun_when_the_run_has_to_stop() -> None:
    stop = Stop()
    stop.request("timed_out")
    with pytest.raises(Stopped):
        complete_in_time(Calling(fails), request(), stop, seconds=60)


def test_a_call_is_given_up_when_the_run_has_to_stop() -> None:
    stop, release = Stop(), threading.Event()

    def thinks() -> Reply:
        stop.request("cancelled")
        release.wait(60)
        return Reply(blocks=(), stop="end")

    with pytest.raises(Stopped):
        complete_in_time(Calling(thinks), request(), stop, seconds=60)
    release.set()


def test_a_call_is_given_up_when_its_time_is_up() -> None:
    release = threading.Event()

    def thinks() -> Reply:
        release.wait(60)
        return Reply(blocks=(), stop="end")

    with pytest.raises(TryFailed, match=r"did not answer within 0\.01 s") as caught:
        complete_in_time(Calling(thinks), request(), Stop(), seconds=0.01)
    release.set()
    assert caught.value.retryable
