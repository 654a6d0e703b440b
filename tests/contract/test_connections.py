from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper import limits
from sandpiper.adapters.connections import DynamoConnections
from sandpiper.errors import AuthenticationError, NotFound, QuotaExceeded
from sandpiper.logic.subscriptions import runs_of
from sandpiper.testing.fakes import FakeConnections

if TYPE_CHECKING:
    from sandpiper.ports import Connections
    from tests.contract.worlds import Aws

NOW = 1_900_000_000
ANN = {"user": "ann", "org": None, "scope": "runs:read"}


@pytest.fixture(params=["fake", "real"])
def connections(request: pytest.FixtureRequest) -> Connections:
    if request.param == "fake":
        return FakeConnections()
    aws: Aws = request.getfixturevalue("aws")
    return DynamoConnections(request.getfixturevalue("dynamodb"), connections_table=aws.connections_table)


@pytest.fixture
def ticket() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def connection(connections: Connections) -> str:
    connection_id = f"{uuid.uuid4().hex[:16]}="
    connections.open(connection_id, ANN, expires_at=2_000_000_000)
    return connection_id


def test_a_ticket_tells_who_asked_for_it(connections: Connections, ticket: str) -> None:
    connections.issue_ticket(ticket, ANN, expires_at=100)
    assert connections.redeem_ticket(ticket, now=99) == ANN


def test_a_ticket_is_good_once(connections: Connections, ticket: str) -> None:
    connections.issue_ticket(ticket, ANN, expires_at=100)
    connections.redeem_ticket(ticket, now=1)
    with pytest.raises(AuthenticationError):
        connections.redeem_ticket(ticket, now=1)


def test_of_many_who_come_with_one_ticket_one_gets_in(connections: Connections, ticket: str) -> None:
    connections.issue_ticket(ticket, ANN, expires_at=100)

    def enters(_: int) -> bool:
        try:
            connections.redeem_ticket(ticket, now=1)
        except AuthenticationError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(enters, range(16))) == 1


def test_an_expired_ticket_is_refused_although_its_row_is_still_there(connections: Connections, ticket: str) -> None:
    connections.issue_ticket(ticket, ANN, expires_at=100)
    with pytest.raises(AuthenticationError):
        connections.redeem_ticket(ticket, now=100)


def test_a_ticket_that_nobody_issued_is_refused(connections: Connections, ticket: str) -> None:
    with pytest.raises(AuthenticationError):
        connections.redeem_ticket(ticket, now=1)


def test_the_table_holds_no_ticket_that_could_be_used(aws: Aws, dynamodb: Any, ticket: str) -> None:
    connections = DynamoConnections(dynamodb, connections_table=aws.connections_table)
    connections.issue_ticket(ticket, ANN, expires_at=100)
    assert ticket not in str(dynamodb.scan(TableName=aws.connections_table)["Items"])


def test_an_open_connection_knows_whose_it_is(connections: Connections, connection: str) -> None:
    assert connections.identity(connection) == ANN


def test_an_unknown_connection_is_not_found(connections: Connections) -> None:
    with pytest.raises(NotFound):
        connections.identity("nobody")
    with pytest.raises(NotFound):
        connections.subscribe("nobody", "run-1")


def test_subscribers_of_a_run_are_all_who_follow_it(connections: Connections, connection: str, run_id: str) -> None:
    connections.open(f"{connection}-2", ANN, expires_at=2_000_000_000)
    connections.subscribe(connection, run_id)
    connections.subscribe(connection, run_id)
    connections.subscribe(f"{connection}-2", run_id)
    connections.subscribe(connection, f"{run_id}-other")
    assert sorted(connections.subscribers(run_id)) == [connection, f"{connection}-2"]
    assert connections.subscribers(f"{run_id}-other") == [connection]


def test_all_runs_of_somebody_are_followed_as_one_run_is(connections: Connections, connection: str, owner: str) -> None:
    connections.subscribe(connection, runs_of(owner))
    assert connections.subscribers(runs_of(owner)) == [connection]
    assert connections.subscribers(owner) == []
    connections.close(connection)
    assert connections.subscribers(runs_of(owner)) == []


def test_unsubscribing_ends_one_subscription_and_may_be_repeated(
    connections: Connections, connection: str, run_id: str
) -> None:
    connections.subscribe(connection, run_id)
    connections.subscribe(connection, f"{run_id}-other")
    connections.unsubscribe(connection, run_id)
    connections.unsubscribe(connection, run_id)
    assert connections.subscribers(run_id) == []
    assert connections.subscribers(f"{run_id}-other") == [connection]


def test_closing_forgets_the_connection_and_all_it_follows(
    connections: Connections, connection: str, run_id: str
) -> None:
    for n in range(30):
        connections.subscribe(connection, f"{run_id}-{n}")
    connections.close(connection)
    connections.close(connection)
    assert [connections.subscribers(f"{run_id}-{n}") for n in range(30)] == [[]] * 30
    with pytest.raises(NotFound):
        connections.identity(connection)
    with pytest.raises(NotFound):
        connections.subscribe(connection, run_id)


def a_person() -> dict[str, Any]:
    return {"user": f"user-{uuid.uuid4()}", "org": None}


def open_all(connections: Connections, who: dict[str, Any], names: list[str], *, at: int = NOW) -> list[str]:
    """Those that were let in, of sockets that come at once."""

    def try_one(name: str) -> str | None:
        try:
            connections.open(name, who, expires_at=at + 7200, now=at)
        except QuotaExceeded:
            return None
        return name

    with ThreadPoolExecutor(8) as pool:
        return [name for name in pool.map(try_one, names) if name]


def test_a_user_has_so_many_sockets_open_and_no_more(connections: Connections) -> None:
    who = a_person()
    names = [f"{who['user']}-{n}" for n in range(limits.MAX_CONNECTIONS + 6)]
    opened = open_all(connections, who, names)
    assert len(opened) == limits.MAX_CONNECTIONS
    refused = next(name for name in names if name not in opened)
    with pytest.raises(NotFound):
        connections.identity(refused)
    assert open_all(connections, a_person(), [refused]) == [refused]


def test_a_socket_that_is_closed_makes_room_for_one(connections: Connections) -> None:
    who = a_person()
    opened = open_all(connections, who, [f"{who['user']}-{n}" for n in range(limits.MAX_CONNECTIONS)])
    for _ in range(2):
        connections.close(opened[0])
    assert len(open_all(connections, who, [f"{who['user']}-new-{n}" for n in range(3)], at=NOW + 1)) == 1


def test_a_socket_whose_end_nobody_told_counts_until_it_would_have_been_closed(connections: Connections) -> None:
    who = a_person()
    open_all(connections, who, [f"{who['user']}-{n}" for n in range(limits.MAX_CONNECTIONS)])
    assert open_all(connections, who, [f"{who['user']}-later"], at=NOW + 7199) == []
    assert open_all(connections, who, [f"{who['user']}-later"], at=NOW + 7200) != []


def test_a_user_is_given_so_many_tickets_in_a_minute(connections: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TICKETS_PER_MINUTE", 3)
    who, minute = a_person(), NOW - NOW % 60
    for n in range(3):
        connections.issue_ticket(f"{who['user']}-{n}", who, expires_at=minute + 90, now=minute + 20)
    with pytest.raises(QuotaExceeded) as refused:
        connections.issue_ticket(f"{who['user']}-3", who, expires_at=minute + 90, now=minute + 20)
    assert refused.value.retry_after == 40
    with pytest.raises(AuthenticationError):
        connections.redeem_ticket(f"{who['user']}-3", now=minute + 20)
    connections.issue_ticket(f"{who['user']}-4", who, expires_at=minute + 90, now=minute + 60)
