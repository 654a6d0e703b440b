"""The inbox of a run, and changes that are decided on the row as it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper import limits
from sandpiper.errors import Conflict, NotFound
from sandpiper.models.events import NewEvent
from sandpiper.models.run import ApprovalRequest, Budget
from sandpiper.ports import Revision
from tests.contract.samples import new_run_id, outputs

if TYPE_CHECKING:
    from sandpiper.models.run import Run, Status
    from tests.contract.worlds import Store

LIVE: tuple[Status, ...] = ("queued", "provisioning", "running", "suspended")
HELLO: dict[str, Any] = {"action": "message", "by": "ann", "data": {"text": "hello"}}


def test_a_request_and_the_event_that_tells_of_it_are_one_write(store: Store, run: Run) -> None:
    store.runs.put_control(run.run_id, {"action": "cancel", "by": "ann"})
    request = store.runs.put_control(run.run_id, HELLO, event="run_message_received")
    (event,) = store.runs.events(run.run_id, after=1, limit=9)
    assert (event.type, event.data) == ("run_message_received", {"n": 2, "by": "ann", "text": "hello"})
    assert store.runs.controls(run.run_id, after=1) == [request]
    assert (store.runs.get(run.run_id).last_inbox, store.runs.get(run.run_id).last_seq) == (2, 2)


def test_a_request_changes_the_run_in_the_same_write(store: Store, run: Run) -> None:
    approval = ApprovalRequest(
        id="ap-1",
        tool="run_command",
        shown={"command": "x"},
        reason="r",
        risk="high",
        kind="k",
        requested_at=run.created_at,
    )
    store.runs.change(run.run_id, allowed=LIVE, changes={"approval": approval})
    assert store.runs.get(run.run_id).approval == approval
    answer = {"action": "approve", "by": "ann", "data": {"approval_id": "ap-1"}}
    for _ in range(2):
        store.runs.put_control(
            run.run_id, answer, event="approval_resolved", key="approval:ap-1", changes={"approval": None}
        )
    found = store.runs.get(run.run_id)
    assert (found.approval, found.last_inbox) == (None, 1)


def test_a_request_too_big_for_an_event_is_whole_in_the_inbox(store: Store, run: Run) -> None:
    text = "ü" * limits.MAX_MESSAGE_CHARS
    request = store.runs.put_control(run.run_id, {**HELLO, "data": {"text": text}}, event="run_message_received")
    assert store.runs.controls(run.run_id, after=0)[0].data == {"text": text} == request.data
    assert store.runs.events(run.run_id, after=1, limit=1)[0].data["truncated"]


def test_a_request_in_the_wrong_status_is_refused_and_leaves_nothing(store: Store, run: Run) -> None:
    store.runs.change(run.run_id, allowed=LIVE, changes={"status": "failed"})
    with pytest.raises(Conflict):
        store.runs.put_control(run.run_id, HELLO, allowed=LIVE, event="run_message_received")
    assert store.runs.controls(run.run_id, after=0) == []
    assert store.runs.events(run.run_id, after=1, limit=9) == []


def test_one_key_stores_one_request_and_gives_it_again(store: Store, run: Run) -> None:
    with ThreadPoolExecutor(6) as pool:
        jobs = [
            pool.submit(store.runs.put_control, run.run_id, HELLO, event="run_message_received", key="k")
            for _ in range(6)
        ]
        stored = [job.result() for job in jobs]
    assert (
        store.runs.controls(run.run_id, after=0)
        == [stored[0]]
        == list({request.n: request for request in stored}.values())
    )
    assert len(store.runs.events(run.run_id, after=1, limit=9)) == 1
    assert store.runs.put_control(run.run_id, HELLO, event="run_message_received", key="another").n == 2


def test_a_key_is_answered_even_when_the_run_has_ended(store: Store, run: Run) -> None:
    first = store.runs.put_control(run.run_id, HELLO, allowed=LIVE, key="k")
    store.runs.change(run.run_id, allowed=LIVE, changes={"status": "failed"})
    assert store.runs.put_control(run.run_id, HELLO, allowed=LIVE, key="k") == first


def test_a_key_that_was_used_for_something_else_is_a_conflict(store: Store, run: Run) -> None:
    store.runs.put_control(run.run_id, HELLO, key="k")
    with pytest.raises(Conflict):
        store.runs.put_control(run.run_id, {**HELLO, "data": {"text": "other"}}, key="k")


def test_a_revision_is_decided_on_the_run_as_it_is(store: Store, run: Run) -> None:
    def one_more(run: Run) -> Revision:
        turns = (run.budget.max_turns or 0) + 1
        return Revision({"budget": Budget(max_turns=turns)}, outputs(str(turns)))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: store.runs.revise(run.run_id, one_more), range(12)))
    assert store.runs.get(run.run_id).budget == Budget(max_turns=12)
    texts = [event.data["text"] for event in store.runs.events(run.run_id, after=1, limit=99)]
    assert texts == [str(n) for n in range(1, 13)]


def test_a_revision_to_nothing_writes_nothing(store: Store, run: Run) -> None:
    assert store.runs.revise(run.run_id, lambda _: None) == run == store.runs.get(run.run_id)


def test_a_revision_that_is_refused_writes_nothing(store: Store, run: Run) -> None:
    def refuse(_: Run) -> Revision:
        raise Conflict("no")

    with pytest.raises(Conflict, match="no"):
        store.runs.revise(run.run_id, refuse)
    assert store.runs.get(run.run_id) == run


def test_a_revision_of_an_unknown_run_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        store.runs.revise(new_run_id(), lambda _: Revision({}, [NewEvent(type="warning")]))
