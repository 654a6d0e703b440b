"""What only the DynamoDB adapters promise: few calls, and no harm from lost answers and from others in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ReadTimeoutError

from sandpiper.adapters.connections import DynamoConnections
from sandpiper.adapters.runs import DynamoRuns
from sandpiper.adapters.slots import DynamoSlots
from sandpiper.errors import Conflict, Fenced, NotFound
from sandpiper.models.quota import Scope
from sandpiper.testing.fakes import FakeBlobs, FakeClock
from tests.contract.samples import STARTED, a_run, outputs
from tests.contract.worlds import RETENTION_DAYS

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandpiper.models.run import Run
    from tests.contract.worlds import Aws


class Wire:
    """A DynamoDB client that notes every call, loses answers, and lets others in just before a transaction."""

    def __init__(self, dynamodb: Any) -> None:
        self._dynamodb = dynamodb
        self.calls: list[str] = []
        self.answers_to_lose = 0
        self.before_transaction: list[Callable[[], object]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*positional: Any, **arguments: Any) -> Any:
            self.calls.append(name)
            while name == "transact_write_items" and self.before_transaction:
                self.before_transaction.pop()()
            answer = getattr(self._dynamodb, name)(*positional, **arguments)
            if name == "transact_write_items" and self.answers_to_lose:
                self.answers_to_lose -= 1
                raise ReadTimeoutError(endpoint_url="http://dynamodb.test")
            return answer

        return call


@pytest.fixture
def wire(dynamodb: Any) -> Wire:
    return Wire(dynamodb)


@pytest.fixture
def runs(aws: Aws, wire: Any) -> DynamoRuns:
    return DynamoRuns(
        wire, runs_table=aws.runs_table, events_table=aws.events_table, blobs=FakeBlobs(), clock=FakeClock()
    )


@pytest.fixture
def run(aws: Aws, owner: str) -> Run:
    clock = FakeClock()
    return aws.runs(clock).create(a_run(owner, clock), [])


def test_a_writer_reads_once_and_then_appends_with_one_call_each(runs: DynamoRuns, run: Run, wire: Wire) -> None:
    for _ in range(3):
        runs.append(run.run_id, outputs("x", "y"), attempt=0)
    assert wire.calls == ["get_item"] + ["transact_write_items"] * 3


def test_a_writer_that_was_overtaken_reads_again_and_goes_on(runs: DynamoRuns, run: Run, wire: Wire, aws: Aws) -> None:
    runs.append(run.run_id, outputs("mine"))
    aws.runs(FakeClock()).append(run.run_id, outputs("theirs"))
    runs.append(run.run_id, outputs("mine again"))
    assert [event.data["text"] for event in runs.events(run.run_id, after=0, limit=9)] == [
        "mine",
        "theirs",
        "mine again",
    ]


def test_an_append_whose_answer_was_lost_is_not_done_twice(runs: DynamoRuns, run: Run, wire: Wire) -> None:
    wire.answers_to_lose = 2
    (event,) = runs.append(run.run_id, outputs("once"))
    assert runs.events(run.run_id, after=0, limit=9) == [event]
    assert runs.get(run.run_id).last_seq == 1
    assert wire.calls.count("transact_write_items") == 3


def test_a_creation_whose_answer_was_lost_is_no_conflict(runs: DynamoRuns, wire: Wire, owner: str) -> None:
    wire.answers_to_lose = 1
    created = runs.create(a_run(owner, FakeClock()), outputs("first"))
    assert runs.get(created.run_id) == created


def test_a_change_whose_answer_was_lost_is_done_once(runs: DynamoRuns, run: Run, wire: Wire) -> None:
    wire.answers_to_lose = 1
    changed = runs.change(run.run_id, allowed=["queued"], changes={"status": "running"}, events=outputs("once"))
    assert runs.get(run.run_id) == changed
    assert changed.last_seq == 1


def test_a_slot_whose_answer_was_lost_is_taken_once(aws: Aws, wire: Any, owner: str) -> None:
    slots = DynamoSlots(wire, runs_table=aws.runs_table)
    slots.acquire(Scope("user", owner), "run-1", since=STARTED, limit=1, token="t1")
    wire.answers_to_lose = 1
    assert slots.acquire(Scope("user", owner), "run-2", since=STARTED, limit=1, token="t2") == 1
    assert slots.acquire(Scope("user", owner), "run-3", since=STARTED, limit=1, token="t3") == 2


@pytest.mark.parametrize("changes", [{"status": "cancelled"}, {"attempt": 1}])
def test_a_writer_that_was_fenced_by_another_process_notices_at_its_next_write(
    runs: DynamoRuns, run: Run, aws: Aws, changes: dict[str, Any]
) -> None:
    runs.append(run.run_id, outputs("mine"), attempt=0)
    aws.runs(FakeClock()).change(run.run_id, allowed=["queued"], changes=changes)
    with pytest.raises(Fenced):
        runs.append(run.run_id, outputs("late"), attempt=0)
    assert runs.get(run.run_id).last_seq == 1


def test_a_change_knows_of_one_that_came_in_between(runs: DynamoRuns, run: Run, wire: Wire, aws: Aws) -> None:
    """A suspension and a cancel that cross: were the cancel overlooked, nobody would wake the run."""
    other = aws.runs(FakeClock())
    wire.before_transaction = [lambda: other.change(run.run_id, allowed=["queued"], changes={"cancel_requested": True})]
    changed = runs.change(run.run_id, allowed=["queued"], changes={"resume_token": "t"})
    assert changed.cancel_requested
    assert runs.get(run.run_id) == changed


def test_a_change_is_refused_if_the_run_ends_in_between(runs: DynamoRuns, run: Run, wire: Wire, aws: Aws) -> None:
    other = aws.runs(FakeClock())
    wire.before_transaction = [lambda: other.change(run.run_id, allowed=["queued"], changes={"status": "failed"})]
    with pytest.raises(Conflict):
        runs.change(run.run_id, allowed=["queued"], changes={"status": "completed"})
    assert runs.get(run.run_id).status == "failed"


def test_a_connection_that_closes_while_it_subscribes_leaves_nothing_behind(
    aws: Aws, wire: Any, dynamodb: Any, run_id: str
) -> None:
    connections = DynamoConnections(wire, connections_table=aws.connections_table)
    connections.open(f"connection of {run_id}", {"user": "ann"}, expires_at=2_000_000_000)
    other = DynamoConnections(dynamodb, connections_table=aws.connections_table)
    wire.before_transaction = [lambda: other.close(f"connection of {run_id}")]
    with pytest.raises(NotFound):
        connections.subscribe(f"connection of {run_id}", run_id)
    assert connections.subscribers(run_id) == []


def test_rows_go_away_when_their_time_has_come(aws: Aws, dynamodb: Any, owner: str) -> None:
    clock = FakeClock()
    run = aws.runs(clock).create(a_run(owner, clock), outputs("x"))
    aws.runs(clock).put_control(run.run_id, {"action": "cancel", "by": "ann"})
    rows = dynamodb.query(
        TableName=aws.runs_table,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": f"RUN#{run.run_id}"}},
    )["Items"]
    expires_at = {"N": str(int(clock.now().timestamp()) + RETENTION_DAYS * 24 * 3600)}
    assert [row["expires_at"] for row in rows] == [expires_at, expires_at]


def test_a_line_of_waiting_runs_is_not_taken_for_runs(runs: DynamoRuns, run: Run, aws: Aws, dynamodb: Any) -> None:
    slots = DynamoSlots(dynamodb, runs_table=aws.runs_table)
    slots.acquire(*run.scopes, run.run_id, since=STARTED, limit=1, token="t1")
    slots.acquire(*run.scopes, "run-2", since=STARTED, limit=1, token="t2")
    page = runs.list_by_owner(run.owner, status=None, repo=None, limit=9, cursor=None)
    assert page.items == (run,)
