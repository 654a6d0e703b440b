from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.adapters.event_log import EventLog, event_from_item
from sandpiper.errors import NotFound
from sandpiper.testing.fakes import FakeClock, FakeEventLog, FakeRuns
from tests.contract.samples import a_run, new_run_id, outputs
from tests.contract.worlds import RETENTION_DAYS

if TYPE_CHECKING:
    from sandpiper import ports
    from sandpiper.models.run import Run
    from tests.contract.worlds import Aws

type Logged = tuple[ports.EventLog, Run]


@pytest.fixture(params=["fake", "real"])
def logged(request: pytest.FixtureRequest, owner: str) -> Logged:
    """A log, and a run of attempt 0 with the events a, b, c in it."""
    clock = FakeClock()
    run = a_run(owner, clock)
    if request.param == "fake":
        fake = FakeRuns(clock)
        return FakeEventLog(fake), fake.create(run, outputs("a", "b", "c"))
    aws: Aws = request.getfixturevalue("aws")
    log = EventLog(aws.client("dynamodb"), runs_table=aws.runs_table, events_table=aws.events_table)
    return log, aws.runs(clock).create(run, outputs("a", "b", "c"))


def test_events_are_plain_and_as_the_api_shows_them(logged: Logged) -> None:
    log, run = logged
    event = {"run_id": run.run_id, "ts": "2026-01-01T12:00:00.000000Z", "attempt": 0, "type": "tool_output"}
    assert log.read(run.run_id, after=1, limit=9) == [
        {**event, "seq": 2, "data": {"text": "b"}},
        {**event, "seq": 3, "data": {"text": "c"}},
    ]
    assert [read["seq"] for read in log.read(run.run_id, after=0, limit=2)] == [1, 2]


def test_the_head_tells_whose_run_it_is_and_how_far_it_got(logged: Logged) -> None:
    log, run = logged
    assert log.run_head(run.run_id) == {
        "owner": run.owner, "org": None, "last_seq": 3, "status": "queued", "attempt": 0
    }  # fmt: skip


def test_the_heads_tell_how_far_the_runs_of_an_owner_got(logged: Logged) -> None:
    log, run = logged
    assert log.heads(run.owner, limit=5) == [{"run_id": run.run_id, "status": "queued", "last_seq": 3}]
    assert log.heads(f"{run.owner}-other", limit=5) == []


def test_an_unknown_run_has_no_head(logged: Logged) -> None:
    with pytest.raises(NotFound):
        logged[0].run_head(new_run_id())


def test_the_stored_item_is_the_event_that_the_stream_hands_out(aws: Aws, dynamodb: Any, owner: str) -> None:
    clock = FakeClock()
    run = aws.runs(clock).create(a_run(owner, clock), outputs("é"))
    key = {"run_id": {"S": run.run_id}, "seq": {"N": "1"}}
    item = dynamodb.get_item(TableName=aws.events_table, Key=key)["Item"]
    log = EventLog(dynamodb, runs_table=aws.runs_table, events_table=aws.events_table)
    assert [event_from_item(item)] == log.read(run.run_id, after=0, limit=1)
    assert item["expires_at"] == {"N": str(int(clock.now().timestamp()) + RETENTION_DAYS * 24 * 3600)}
