from __future__ import annotations

from datetime import UTC, datetime

from sandbox_task.allowance import Allowance
from sandbox_task.inbox import Inbox
from sandpiper.models.run import Budget, ControlRequest, Usage
from sandpiper.models.spec import RunSpec


def test_a_limit_that_was_raised_counts_from_the_next_look_on() -> None:
    allowance, usage = Allowance(RunSpec(task="t", max_turns=3)), Usage(turns=3)
    assert allowance.exceeded(usage)
    allowance.raise_to(Budget(max_turns=5))
    assert allowance.exceeded(usage) is None
    assert allowance.in_force == Budget(max_turns=5, timeout_seconds=900)


def test_the_working_time_of_earlier_attempts_counts_and_the_waiting_between_them_does_not() -> None:
    seconds = [1_000_000.0]
    allowance = Allowance(RunSpec(task="t", timeout_seconds=100), seconds_before=90, clock=lambda: seconds[0])
    assert (allowance.seconds_used, allowance.time_is_up()) == (90, False)
    seconds[0] += 9
    assert allowance.exceeded(Usage()) == ("timeout_seconds", "The run's 100 seconds are used up.")
    seconds[0] += 1
    assert allowance.time_is_up()
    allowance.raise_to(Budget(timeout_seconds=200))
    assert not allowance.time_is_up()
    assert allowance.exceeded(Usage()) is None


def test_waiting_for_a_person_is_no_working_time() -> None:
    seconds = [0.0]
    allowance = Allowance(RunSpec(task="t", timeout_seconds=100), clock=lambda: seconds[0])
    seconds[0] += 60
    with allowance.standing_still():
        seconds[0] += 500
        assert (allowance.seconds_used, allowance.time_is_up()) == (60, False)
    seconds[0] += 10
    assert allowance.seconds_used == 70


def _request(n: int, text: str) -> ControlRequest:
    return ControlRequest(n=n, action="message", by="ann", at=datetime(2026, 1, 1, tzinfo=UTC), data={"text": text})


def test_a_message_is_heard_once_however_often_it_is_delivered() -> None:
    inbox = Inbox(seen=1)
    inbox.receive([_request(1, "old"), _request(2, "new")])
    inbox.receive([_request(2, "new"), _request(3, "newer")])
    assert (inbox.seen, inbox.take(), inbox.seen, inbox.take()) == (1, ["new", "newer"], 3, [])
