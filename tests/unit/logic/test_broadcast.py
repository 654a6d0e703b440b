from __future__ import annotations

import json
from collections import Counter

import pytest

from sandpiper.logic.broadcast import PAUSES_SECONDS, Broadcast, LogRecord
from sandpiper.testing.fakes import FakeConnections, FakeSockets

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


@pytest.fixture
def pauses() -> list[float]:
    return []


def test_every_subscriber_gets_every_event_in_order(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FakeSockets()
    names = [f"c{n}" for n in range(20)]
    for name in names:
        follow(connections, sockets, name, "r1")
    assert Broadcast(connections, sockets, pauses.append).send(records("r1", 50)) == []
    assert all(seqs(sockets, name) == list(range(1, 51)) for name in names)


def test_an_event_is_sent_as_an_event_frame(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FakeSockets()
    follow(connections, sockets, "c1", "r1")
    (record,) = records("r1", 1)
    Broadcast(connections, sockets, pauses.append).send([record])
    assert json.loads(sockets.frames["c1"][0]) == {"type": "event", "event": record.event}


def test_only_those_who_follow_a_run_hear_of_it(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FakeSockets()
    follow(connections, sockets, "one", "r1")
    follow(connections, sockets, "both", "r1", "r2")
    follow(connections, sockets, "none")
    Broadcast(connections, sockets, pauses.append).send([*records("r1", 2), *records("r2", 1, start=7)])
    assert {name: seqs(sockets, name) for name in sockets.frames} == {"one": [1, 2], "both": [1, 2, 7], "none": []}


def test_a_connection_that_is_gone_is_deleted_and_no_other(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FakeSockets()
    follow(connections, sockets, "here", "r1")
    follow(connections, sockets, "gone", "r1")
    sockets.disconnect("gone")
    assert Broadcast(connections, sockets, pauses.append).send(records("r1", 3)) == []
    assert seqs(sockets, "here") == [1, 2, 3]
    assert connections.subscribers("r1") == ["here"]
    assert pauses == []


def test_a_send_that_fails_for_a_moment_is_repeated_in_place(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FlakySockets({"c1": 2})
    follow(connections, sockets, "c1", "r1")
    Broadcast(connections, sockets, pauses.append).send(records("r1", 3))
    assert seqs(sockets, "c1") == [1, 2, 3]
    assert pauses == list(PAUSES_SECONDS[:2])


def test_a_connection_that_never_takes_anything_does_not_hold_up_the_rest(pauses: list[float]) -> None:
    connections, sockets = FakeConnections(), FlakySockets({"bad": 1000})
    follow(connections, sockets, "bad", "r1")
    follow(connections, sockets, "good", "r1")
    assert Broadcast(connections, sockets, pauses.append).send(records("r1", 3)) == []
    assert seqs(sockets, "good") == [1, 2, 3]
    assert connections.subscribers("r1") == ["good"]


def test_subscribers_that_cannot_be_read_for_a_moment_are_read_again(pauses: list[float]) -> None:
    connections, sockets = FlakyConnections({"r1": 1}), FakeSockets()
    follow(connections, sockets, "c1", "r1")
    assert Broadcast(connections, sockets, pauses.append).send(records("r1", 1)) == []
    assert seqs(sockets, "c1") == [1]


def test_records_whose_subscribers_stay_unknown_are_reported_and_the_others_are_sent(pauses: list[float]) -> None:
    connections, sockets = FlakyConnections({"r1": 1000}), FakeSockets()
    follow(connections, sockets, "c2", "r2")
    failed = Broadcast(connections, sockets, pauses.append).send([*records("r1", 2), *records("r2", 1)])
    assert failed == ["r1-1", "r1-2"]
    assert seqs(sockets, "c2") == [1]
