from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from sandpiper import limits
from sandpiper.errors import Conflict, Fenced, NotFound
from sandpiper.models.events import NewEvent
from sandpiper.models.quota import Scope
from sandpiper.models.run import ErrorInfo, Intent, RunResult, Usage
from sandpiper.ports import RunHead
from tests.contract.samples import STARTED, a_run, new_run_id, outputs

if TYPE_CHECKING:
    from sandpiper.models.run import Run, Status
    from tests.contract.worlds import Store

LIVE: tuple[Status, ...] = ("queued", "provisioning", "running", "suspended")


@pytest.fixture
def running(store: Store, run: Run) -> Run:
    return store.runs.change(run.run_id, allowed=["queued"], changes={"status": "running", "attempt": 1})


def test_a_created_run_is_read_back_as_it_was_with_its_first_events_counted(store: Store, owner: str) -> None:
    run = a_run(owner, store.clock, org="octo", resume_token="t" * 1024)
    created = store.runs.create(run, [NewEvent(type="run_queued"), NewEvent(type="run_slot_waiting")])
    assert created == run.model_copy(update={"last_seq": 2})
    assert store.runs.get(run.run_id) == created
    assert [(event.seq, event.type, event.attempt) for event in store.runs.events(run.run_id, after=0, limit=9)] == [
        (1, "run_queued", 0),
        (2, "run_slot_waiting", 0),
    ]


def test_intents_and_where_a_run_goes_on_are_read_back(store: Store, running: Run) -> None:
    intents = {
        "push": Intent(at=store.clock.now(), result={"sha": "abc", "n": 1}),
        "comment": Intent(at=store.clock.now()),
    }
    changes = {"intents": intents, "checkpoint_key": "k", "checkpoint_turn": 3}
    changed = store.runs.change(running.run_id, allowed=LIVE, changes=changes)
    assert changed.intents == intents
    assert store.runs.get(running.run_id) == changed


def test_a_run_id_is_taken_once(store: Store, run: Run) -> None:
    with pytest.raises(Conflict):
        store.runs.create(run, [NewEvent(type="run_queued")])
    assert store.runs.get(run.run_id).last_seq == 1


def test_an_unknown_run_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        store.runs.get(new_run_id())
    with pytest.raises(NotFound):
        store.runs.append(new_run_id(), outputs("x"))
    with pytest.raises(NotFound):
        store.runs.change(new_run_id(), allowed=LIVE, changes={})
    with pytest.raises(NotFound):
        store.runs.put_control(new_run_id(), {"action": "cancel", "by": "ann"})


def test_appended_events_are_numbered_on_without_a_gap(store: Store, run: Run) -> None:
    count = 2 * limits.EVENTS_PER_TRANSACTION + 3
    appended = store.runs.append(run.run_id, outputs(*map(str, range(count))))
    appended += store.runs.append(run.run_id, outputs("last"))
    assert [event.seq for event in appended] == list(range(2, count + 3))
    assert store.runs.events(run.run_id, after=1, limit=1000) == appended
    assert store.runs.get(run.run_id).last_seq == count + 2


def test_events_are_read_from_where_a_reader_left_off(store: Store, run: Run) -> None:
    store.runs.append(run.run_id, outputs("a", "b", "c"))
    assert [event.seq for event in store.runs.events(run.run_id, after=1, limit=2)] == [2, 3]
    assert store.runs.events(run.run_id, after=4, limit=10) == []
    assert store.runs.events(new_run_id(), after=0, limit=10) == []


def test_many_writers_leave_no_gap_and_no_double(store: Store, run: Run) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: store.runs.append(run.run_id, outputs(f"{n}.0", f"{n}.1")), range(24)))
    log = store.runs.events(run.run_id, after=1, limit=1000)
    assert [event.seq for event in log] == list(range(2, 50))
    assert sorted(event.data["text"] for event in log) == sorted(f"{n}.{m}" for n in range(24) for m in range(2))
    assert all(first.seq + 1 == second.seq for first, second in results)


def test_events_of_the_current_attempt_carry_its_number(store: Store, running: Run) -> None:
    (event,) = store.runs.append(running.run_id, outputs("x"), attempt=1)
    assert event.attempt == 1
    (event,) = store.runs.append(running.run_id, outputs("x"))
    assert event.attempt == 1


def test_a_sandbox_that_was_replaced_can_append_nothing_more(store: Store, running: Run) -> None:
    store.runs.append(running.run_id, outputs("mine"), attempt=1)
    store.runs.change(running.run_id, allowed=LIVE, changes={"attempt": 2}, events=outputs("next"))
    with pytest.raises(Fenced):
        store.runs.append(running.run_id, outputs("late"), attempt=1)
    store.runs.append(running.run_id, outputs("fresh"), attempt=2)
    texts = [event.data.get("text") for event in store.runs.events(running.run_id, after=1, limit=9)]
    assert texts == ["mine", "next", "fresh"]


def test_a_sandbox_that_was_replaced_without_an_event_can_append_nothing_more(store: Store, running: Run) -> None:
    store.runs.append(running.run_id, outputs("mine"), attempt=1)
    store.runs.change(running.run_id, allowed=LIVE, changes={"attempt": 2})
    with pytest.raises(Fenced):
        store.runs.append(running.run_id, outputs("late"), attempt=1)


def test_a_sandbox_can_append_nothing_to_a_run_that_has_ended(store: Store, running: Run) -> None:
    store.runs.append(running.run_id, outputs("mine"), attempt=1)
    store.runs.change(running.run_id, allowed=LIVE, changes={"status": "cancelled"})
    with pytest.raises(Fenced):
        store.runs.append(running.run_id, outputs("late"), attempt=1)


def test_the_workflow_can_append_to_a_run_that_has_ended(store: Store, running: Run) -> None:
    store.runs.change(running.run_id, allowed=LIVE, changes={"status": "cancelled"})
    assert [event.seq for event in store.runs.append(running.run_id, outputs("pr"))] == [2]


def test_a_change_sets_fields_and_writes_its_events_at_once(store: Store, run: Run) -> None:
    store.clock.advance(5)
    started = store.clock.now()
    changes = {"status": "provisioning", "attempt": 1, "started_at": started, "queue_position": 3}
    changed = store.runs.change(
        run.run_id, allowed=["queued"], changes=changes, events=[NewEvent(type="run_dispatched")]
    )
    assert changed == run.model_copy(update={**changes, "last_seq": 2, "updated_at": started})
    assert store.runs.get(run.run_id) == changed
    (event,) = store.runs.events(run.run_id, after=1, limit=9)
    assert (event.type, event.attempt, event.ts) == ("run_dispatched", 1, started)


def test_a_change_takes_results_and_errors_as_models_or_as_dictionaries(store: Store, running: Run) -> None:
    result = RunResult(outcome="failed", usage=Usage(turns=3, cost_usd=0.125), durations_ms={"clone": 12})
    error = ErrorInfo(type="gate_failed", message="pytest is red")
    changed = store.runs.change(running.run_id, allowed=LIVE, changes={"result": result, "error": error.model_dump()})
    assert (changed.result, changed.error) == (result, error)
    assert store.runs.get(running.run_id) == changed


def test_a_field_is_cleared_by_none(store: Store, run: Run) -> None:
    store.runs.change(run.run_id, allowed=LIVE, changes={"resume_token": "t", "queue_position": 2})
    store.runs.change(run.run_id, allowed=LIVE, changes={"resume_token": None})
    read = store.runs.get(run.run_id)
    assert (read.resume_token, read.queue_position) == (None, 2)


def test_a_change_from_another_status_is_a_conflict_and_writes_nothing(store: Store, running: Run) -> None:
    with pytest.raises(Conflict):
        store.runs.change(running.run_id, allowed=["queued"], changes={"attempt": 9}, events=outputs("x"))
    assert store.runs.get(running.run_id) == running
    assert store.runs.events(running.run_id, after=1, limit=9) == []


def test_a_change_by_a_sandbox_that_was_replaced_is_fenced(store: Store, running: Run) -> None:
    store.runs.change(running.run_id, allowed=LIVE, changes={"status": "suspended"}, attempt=1)
    with pytest.raises(Fenced):
        store.runs.change(running.run_id, allowed=LIVE, changes={"status": "completed"}, attempt=0)
    assert store.runs.get(running.run_id).status == "suspended"


def test_of_many_who_end_a_run_one_does(store: Store, running: Run) -> None:
    def end(status: str) -> bool:
        try:
            store.runs.change(running.run_id, allowed=LIVE, changes={"status": status}, events=outputs(status))
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(end, ["completed", "failed", "cancelled", "timed_out"] * 4)) == 1
    (event,) = store.runs.events(running.run_id, after=1, limit=9)
    assert event.data["text"] == store.runs.get(running.run_id).status


def test_of_two_changes_at_once_the_second_sees_the_first(store: Store, running: Run) -> None:
    """A cancel and a suspension that cross: whoever comes second must know of both."""

    def cancel() -> Run:
        return store.runs.change(running.run_id, allowed=LIVE, changes={"cancel_requested": True})

    def suspend() -> Run:
        return store.runs.change(running.run_id, allowed=LIVE, changes={"resume_token": "t"}, events=outputs("s"))

    with ThreadPoolExecutor(2) as pool:
        done = [job.result() for job in [pool.submit(cancel), pool.submit(suspend)]]
    assert any(run.cancel_requested and run.resume_token == "t" for run in done)


def test_a_run_that_ends_frees_its_slot_and_forgets_its_token(store: Store, running: Run) -> None:
    assert store.slots.acquire(*running.scopes, running.run_id, since=STARTED, limit=1, token="t1") == 0
    store.runs.change(running.run_id, allowed=LIVE, changes={"resume_token": "t"})
    ended = store.runs.change(running.run_id, allowed=LIVE, changes={"status": "failed"})
    assert ended.resume_token is None
    assert store.runs.get(running.run_id) == ended
    assert store.slots.acquire(*running.scopes, new_run_id(), since=STARTED, limit=1, token="t2") == 0


def test_a_run_called_up_from_the_line_is_named_until_it_is_dispatched(store: Store, run: Run) -> None:
    first = new_run_id()
    store.slots.acquire(*run.scopes, first, since=STARTED, limit=1, token="t1")
    store.slots.acquire(*run.scopes, run.run_id, since=STARTED, limit=1, token="t2")
    assert store.slots.release(*run.scopes, first, limit=1) == [(run.run_id, "t2")]
    assert store.slots.release(*run.scopes, first, limit=1) == [(run.run_id, "t2")]
    store.runs.change(run.run_id, allowed=["queued"], changes={"status": "provisioning"})
    assert store.slots.release(*run.scopes, first, limit=1) == []
    assert store.slots.acquire(*run.scopes, new_run_id(), since=STARTED, limit=1, token="t3") == 1


def test_big_event_data_is_kept_in_a_blob_with_a_preview_inline(store: Store, run: Run) -> None:
    data = {"text": "ü" * limits.INLINE_EVENT_BYTES}
    (event,) = store.runs.append(run.run_id, [NewEvent(type="tool_output", data=data)])
    assert store.runs.events(run.run_id, after=1, limit=1) == [event]
    stored = store.blobs.get(event.data["data_key"])
    assert json.loads(stored) == data
    assert event.data == {
        "preview": stored.decode()[: limits.PREVIEW_CHARS],
        "truncated": True,
        "data_key": event.data["data_key"],
        "size": len(stored),
    }
    assert event.data["data_key"].startswith(f"runs/{run.run_id}/data/")


def test_event_data_of_the_largest_inline_size_stays_inline(store: Store, run: Run) -> None:
    overhead = len(json.dumps({"text": ""}, separators=(",", ":")))
    data = {"text": "x" * (limits.INLINE_EVENT_BYTES - overhead)}
    (event,) = store.runs.append(run.run_id, [NewEvent(type="tool_output", data=data)])
    assert event.data == data


def test_output_that_is_no_text_can_be_appended(store: Store, run: Run) -> None:
    store.runs.append(run.run_id, outputs("half \udce2 and nul \x00"))
    (event,) = store.runs.events(run.run_id, after=1, limit=1)
    assert event.data == {"text": "half ? and nul \x00"}


def test_more_events_than_one_transaction_takes_are_refused_with_a_change(store: Store, run: Run) -> None:
    with pytest.raises(ValueError, match="26 events"):
        store.runs.change(run.run_id, allowed=LIVE, changes={}, events=outputs(*"abcdefghijklmnopqrstuvwxyz"))
    assert store.runs.get(run.run_id) == run


def test_control_requests_are_numbered_and_read_from_where_the_reader_left_off(store: Store, run: Run) -> None:
    first = store.runs.put_control(run.run_id, {"action": "message", "by": "ann", "data": {"text": "go on"}})
    second = store.runs.put_control(run.run_id, {"action": "cancel", "by": "ann"})
    assert (first.n, second.n, second.at) == (1, 2, store.clock.now())
    assert store.runs.controls(run.run_id, after=0) == [first, second]
    assert store.runs.controls(run.run_id, after=1) == [second]
    assert store.runs.get(run.run_id).last_inbox == 2


def test_control_requests_at_the_same_time_are_all_kept(store: Store, run: Run) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: store.runs.put_control(run.run_id, {"action": "resume", "by": str(n)}), range(12)))
    kept = store.runs.controls(run.run_id, after=0)
    assert [control.n for control in kept] == list(range(1, 13))
    assert {control.by for control in kept} == {str(n) for n in range(12)}


def test_the_inventory_has_every_run_its_slots_and_its_secrets(store: Store, run: Run) -> None:
    waiting, org = store.runs.create(a_run(run.owner, store.clock), []), Scope("org", f"org of {run.owner}")
    for holder in (run, waiting):
        store.slots.acquire(*run.scopes, holder.run_id, since=STARTED, limit=1, token="t")
    store.slots.acquire(org, run.run_id, since=STARTED, limit=1, token="t")
    store.clock.advance(60)
    store.runs.change(run.run_id, allowed=LIVE, changes={"status": "suspended"})
    seen = store.runs.inventory()
    assert seen.runs[run.run_id] == RunHead(run.run_id, "suspended", store.clock.now())
    assert seen.runs[waiting.run_id].status == "queued"
    assert seen.slots[Scope("user", run.owner)] == {run.run_id, waiting.run_id}
    assert seen.slots[org] == {run.run_id}
    assert run.run_id not in seen.secrets


def test_slots_that_nobody_has_are_in_no_inventory(store: Store, run: Run) -> None:
    store.slots.acquire(*run.scopes, run.run_id, since=STARTED, limit=1, token="t")
    store.runs.change(run.run_id, allowed=LIVE, changes={"status": "failed"})
    assert run.scopes[0] not in store.runs.inventory().slots
