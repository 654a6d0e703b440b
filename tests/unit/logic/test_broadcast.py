from __future__ import annotations

import json
import threading
from collections import Counter

import pytest

from sandpiper import limits
from sandpiper.errors import NotFound
from sandpiper.logic.broadcast import PAUSES_SECONDS, Broadcast, LogRecord
from sandpiper.logic.subscriptions import runs_of
from sandpiper.ports import Stuck
from sandpiper.testing.fakes import FakeConnections, FakeSockets
from sandpiper_cli.client import event_of
from sandpiper_cli.ordering import InOrder

IDENTITY = {"user": "ann"}


class FlakySockets(FakeSockets):
    """Fails the first sends to some connections."""

    def __init__(self, failures: dict[str, int]) -> None:
        super().__init__()
        self.failures = Counter(failures)

    def send(self, connection_id: str, frame: bytes) -> None:
        if self.failures[connection_id] > 0:
            self.failures[connection_id] -= 1
            message = "LimitExceededException"
            raise ConnectionError(message)
        super().send(connection_id, frame)


class FlakyConnections(FakeConnections):
    def __init__(self, failures: dict[str, int]) -> None:
        super().__init__()
        self.failures = Counter(failures)

    def subscribers(self, run_id: str) -> list[str]:
        if self.failures[run_id] > 0:
            self.failures[run_id] -= 1
            message = "throttled"
            raise ConnectionError(message)
        return super().subscribers(run_id)


def records(run_id: str, count: int, start: int = 1) -> list[LogRecord]:
    return [
        LogRecord(f"{run_id}-{seq}", {"run_id": run_id, "seq": seq, "type": "agent_message", "data": {}})
        for seq in range(start, start + count)
    ]


def seqs(sockets: FakeSockets, connection_id: str) -> list[int]:
    return [json.loads(frame)["event"]["seq"] for frame in sockets.frames[connection_id]]


def follow(connections: FakeConnections, sockets: FakeSockets, connection_id: str, *runs: str) -> None:
    sockets.connect(connection_id)
    connections.open(connection_id, IDENTITY, expires_at=2**40)
    for run_id in runs:
        connections.subscribe(connection_id, run_id)


def owner_of(run_id: str) -> str:
    return f"owner of {run_id}"


@pytest.fixture
def pauses() -> list[float]:
    return []


def test_every_subscriber_gets_every_event_in_order(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FakeSockets()
    names = [f"c{n}" for n in range(20)]
    for name in names:
        follow(connections, sockets, name, "r1")
    assert Broadcast(connections, sockets, owner_of, pauses.append).send(records("r1", 50)) == []
    assert all(seqs(sockets, name) == list(range(1, 51)) for name in names)


def test_an_event_is_sent_as_an_event_frame(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FakeSockets()
    follow(connections, sockets, "c1", "r1")
    (record,) = records("r1", 1)
    Broadcast(connections, sockets, owner_of, pauses.append).send([record])
    assert json.loads(sockets.frames["c1"][0]) == {"type": "event", "event": record.event}


def test_only_those_who_follow_a_run_hear_of_it(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FakeSockets()
    follow(connections, sockets, "one", "r1")
    follow(connections, sockets, "both", "r1", "r2")
    follow(connections, sockets, "none")
    Broadcast(connections, sockets, owner_of, pauses.append).send([*records("r1", 2), *records("r2", 1, start=7)])
    assert {name: seqs(sockets, name) for name in sockets.frames} == {"one": [1, 2], "both": [1, 2, 7], "none": []}


def test_a_connection_that_is_gone_is_deleted_and_no_other(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FakeSockets()
    follow(connections, sockets, "here", "r1")
    follow(connections, sockets, "gone", "r1")
    sockets.disconnect("gone")
    assert Broadcast(connections, sockets, owner_of, pauses.append).send(records("r1", 3)) == []
    assert seqs(sockets, "here") == [1, 2, 3]
    assert connections.subscribers("r1") == ["here"]
    assert pauses == []


def test_a_send_that_fails_for_a_moment_is_repeated_in_place(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FlakySockets({"c1": 2})
    follow(connections, sockets, "c1", "r1")
    Broadcast(connections, sockets, owner_of, pauses.append).send(records("r1", 3))
    assert seqs(sockets, "c1") == [1, 2, 3]
    assert pauses == list(PAUSES_SECONDS[:2])


def test_a_connection_that_never_takes_anything_does_not_hold_up_the_rest(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FlakySockets({"bad": 1000})
    follow(connections, sockets, "bad", "r1")
    follow(connections, sockets, "good", "r1")
    assert Broadcast(connections, sockets, owner_of, pauses.append).send(records("r1", 3)) == []
    assert seqs(sockets, "good") == [1, 2, 3]
    assert connections.subscribers("r1") == ["good"]


def test_subscribers_that_cannot_be_read_for_a_moment_are_read_again(pauses: list[float]) -> None:
    connections, sockets = FlakyConnections({"r1": 1}), FakeSockets()
    follow(connections, sockets, "c1", "r1")
    assert Broadcast(connections, sockets, owner_of, pauses.append).send(records("r1", 1)) == []
    assert seqs(sockets, "c1") == [1]


def test_records_whose_subscribers_stay_unknown_are_reported_and_the_others_are_sent(pauses: list[float]) -> None:
    connections, sockets = FlakyConnections({"r1": 1000}), FakeSockets()
    follow(connections, sockets, "c2", "r2")
    failed = Broadcast(connections, sockets, owner_of, pauses.append).send([*records("r1", 2), *records("r2", 1)])
    assert failed == ["r1-1", "r1-2"]
    assert seqs(sockets, "c2") == [1]


def test_who_follows_all_runs_of_their_owner_hears_of_each_once(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FakeSockets()
    follow(connections, sockets, "all", runs_of("owner of r1"))
    follow(connections, sockets, "both", runs_of("owner of r1"), "r1")
    follow(connections, sockets, "other", runs_of("owner of r2"))
    assert Broadcast(connections, sockets, owner_of, pauses.append).send(records("r1", 3)) == []
    assert {name: seqs(sockets, name) for name in sockets.frames} == {"all": [1, 2, 3], "both": [1, 2, 3], "other": []}


def test_a_run_that_is_gone_is_still_told_to_those_who_follow_it(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FakeSockets()
    follow(connections, sockets, "c1", "r1")

    def nobody(run_id: str) -> str:
        raise NotFound(run_id)

    assert Broadcast(connections, sockets, nobody, pauses.append).send(records("r1", 1)) == []
    assert (seqs(sockets, "c1"), pauses) == ([1], [])


def test_words_of_the_model_are_sent_as_what_they_are(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FakeSockets()
    follow(connections, sockets, "c1", "r1")
    data = {"turn": 2, "block": 0, "kind": "text", "offset": 7, "text": "Hm"}
    row = {"run_id": "r1", "seq": 0, "ts": "…", "attempt": 3, "type": "agent_delta", "data": data}
    Broadcast(connections, sockets, owner_of, pauses.append).send([LogRecord("1", row)])
    expected = {"type": "agent_delta", "run_id": "r1", "attempt": 3, "ephemeral": True, **data}
    assert [json.loads(frame) for frame in sockets.frames["c1"]] == [expected]


class StuckSockets(FakeSockets):
    """Some connections take nothing, and say so only after a while."""

    def __init__(self, stuck: str, others: int) -> None:
        super().__init__()
        self._stuck, self._others = stuck, threading.Semaphore(0)
        self._waited_for = others
        self.tries = 0

    def send(self, connection_id: str, frame: bytes) -> None:
        if connection_id != self._stuck:
            super().send(connection_id, frame)
            self._others.release()
            return
        self.tries += 1
        for _ in range(self._waited_for):
            assert self._others.acquire(timeout=10)
        raise Stuck(connection_id)


def test_a_connection_that_hangs_is_waited_for_by_nobody_and_deleted_at_once(pauses: list[float]) -> None:
    names = [f"c{number}" for number in range(20)]
    connections, sockets = FakeConnections(), StuckSockets("c0", others=3 * 19)
    for name in names:
        follow(connections, sockets, name, "r1")
    assert Broadcast(connections, sockets, owner_of, pauses.append).send(records("r1", 3)) == []
    assert all(seqs(sockets, name) == [1, 2, 3] for name in names[1:])
    assert connections.subscribers("r1") == sorted(names[1:])
    assert (sockets.tries, pauses) == (1, [])


class SlowSockets(FakeSockets):
    now = 0.0

    def send(self, connection_id: str, frame: bytes) -> None:
        self.now += limits.DELIVERY_SECONDS / 2
        super().send(connection_id, frame)


def test_a_connection_that_is_too_slow_for_a_batch_is_given_up(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), SlowSockets()
    follow(connections, sockets, "c1", "r1")
    slow = Broadcast(connections, sockets, owner_of, pauses.append, now=lambda: sockets.now)
    assert slow.send(records("r1", 10)) == []
    assert seqs(sockets, "c1") == [1, 2, 3]
    assert connections.subscribers("r1") == []


class Crash(BaseException):
    """The process is gone."""


class CrashingSockets(FakeSockets):
    left = 5

    def send(self, connection_id: str, frame: bytes) -> None:
        self.left -= 1
        if self.left == 0:
            raise Crash
        super().send(connection_id, frame)


def test_a_crash_in_the_middle_of_a_batch_loses_nothing_and_shows_nobody_anything_twice(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), CrashingSockets()
    for name in ("one", "two"):
        follow(connections, sockets, name, "r1")
    batch = records("r1", 4)
    with pytest.raises(Crash):
        Broadcast(connections, sockets, owner_of, pauses.append).send(batch)
    assert Broadcast(connections, sockets, owner_of, pauses.append).send(batch) == []
    for name in ("one", "two"):
        order, seen = InOrder(0), list[int]()
        for frame in sockets.frames[name]:
            seen += [event.seq for event in order.take(event_of(_whole(frame)))]
        assert seen == [1, 2, 3, 4]
    assert sum(map(len, sockets.frames.values())) > 8  # some came twice, and no client showed it


def _whole(frame: bytes) -> dict[str, object]:
    return {"ts": "…", "attempt": 1, **json.loads(frame)["event"]}
