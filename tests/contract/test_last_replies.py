from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.errors import Fenced
from sandpiper.models.events import NewEvent
from sandpiper.models.run import LastReply, Usage
from tests.contract.samples import a_run

if TYPE_CHECKING:
    from sandpiper.models.run import Run
    from tests.contract.worlds import Aws, Store


@pytest.fixture
def running(store: Store, run: Run) -> Run:
    return store.runs.change(run.run_id, allowed=["queued"], changes={"status": "running", "attempt": 1})


def reply(step: str = "{}") -> LastReply:
    return LastReply(after="runs/r/checkpoints/1/1-state.json", usage=Usage(turns=3, cost_usd=0.25), step=step)


def test_a_reply_is_read_back_in_place_of_the_one_before(store: Store, running: Run) -> None:
    assert store.runs.last_reply(running.run_id) is None
    for step in ("first", 'é🦆 {"a": [1]}'):
        store.runs.put_reply(running.run_id, reply(step), attempt=1)
    assert store.runs.last_reply(running.run_id) == reply('é🦆 {"a": [1]}')


def test_a_reply_is_no_change_of_the_run(store: Store, running: Run) -> None:
    store.runs.put_reply(running.run_id, reply(), attempt=1)
    assert store.runs.get(running.run_id) == running
    assert store.runs.controls(running.run_id, after=0) == []


def test_the_next_attempt_finds_it_and_the_older_one_stores_no_more(store: Store, running: Run) -> None:
    store.runs.put_reply(running.run_id, reply("theirs"), attempt=1)
    store.runs.change(running.run_id, allowed=["running"], changes={"attempt": 2})
    with pytest.raises(Fenced):
        store.runs.put_reply(running.run_id, reply("too late"), attempt=1)
    assert store.runs.last_reply(running.run_id) == reply("theirs")
    store.runs.put_reply(running.run_id, reply("ours"), attempt=2)
    assert store.runs.last_reply(running.run_id) == reply("ours")


def test_nothing_is_left_of_a_run_that_has_ended_and_nothing_comes_after(store: Store, running: Run) -> None:
    store.runs.put_reply(running.run_id, reply(), attempt=1)
    store.runs.change(running.run_id, allowed=["running"], changes={"status": "failed"})
    with pytest.raises(Fenced):
        store.runs.put_reply(running.run_id, reply(), attempt=1)
    assert store.runs.last_reply(running.run_id) is None


def test_in_the_database_a_run_that_has_ended_is_one_row(aws: Aws, dynamodb: Any, owner: str, store: Store) -> None:
    runs = aws.runs(store.clock)
    run = runs.create(a_run(owner, store.clock), [NewEvent(type="run_queued")])
    runs.change(run.run_id, allowed=["queued"], changes={"status": "running", "attempt": 1})
    runs.put_reply(run.run_id, reply(), attempt=1)
    assert sort_keys(aws, dynamodb, run) == ["REPLY", "RUN"]
    runs.change(run.run_id, allowed=["running"], changes={"status": "completed"})
    assert sort_keys(aws, dynamodb, run) == ["RUN"]


def sort_keys(aws: Aws, dynamodb: Any, run: Run) -> list[str]:
    values = {":pk": {"S": f"RUN#{run.run_id}"}}
    found = dynamodb.query(
        TableName=aws.runs_table, KeyConditionExpression="pk = :pk", ExpressionAttributeValues=values
    )
    return [item["sk"]["S"] for item in found["Items"]]
