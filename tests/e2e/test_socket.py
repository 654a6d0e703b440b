"""The WebSocket API as a client meets it: tickets, subscriptions, rubbish, connections that die."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import websockets

from sandpiper import limits
from tests.e2e.sockets import SilentRun, Socket, embedded_connections, opened, socket_of, ticket_of
from tests.e2e.support import Person, finishes, new_task, plans, says, tool, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.conftest import Stack

NO_RUN = "run-" + "0" * 26
PING = {"action": "ping"}
PONG = {"type": "pong"}


@pytest.fixture
def ann(stack: Stack) -> Iterator[Person]:
    with Person(stack) as person:
        yield person


@pytest.fixture
def run(stack: Stack, ann: Person) -> SilentRun:
    return SilentRun(stack, ann.name)


# ---- tickets


def assert_refused(stack: Stack, ticket: str) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused, opened(stack, ticket):
        pass
    answer = refused.value.response
    assert answer.status_code in {401, 403}
    assert json.loads(answer.body or b"")["error"]["type"] in {"authentication_error", "permission_error"}


def test_a_ticket_opens_one_socket_and_no_second(stack: Stack, ann: Person) -> None:
    ticket = ticket_of(ann)
    with opened(stack, ticket) as socket:
        assert socket.ask(PING) == PONG
        assert_refused(stack, ticket)
        assert socket.ask(PING) == PONG
    assert_refused(stack, ticket)


def test_of_many_who_come_with_one_ticket_one_gets_in(stack: Stack, ann: Person) -> None:
    ticket, outcomes = ticket_of(ann), []

    def try_it() -> None:
        try:
            with opened(stack, ticket) as socket:
                outcomes.append(socket.ask(PING)["type"])
        except websockets.InvalidStatus:
            outcomes.append("refused")

    visitors = [threading.Thread(target=try_it) for _ in range(5)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert sorted(outcomes) == ["pong", *["refused"] * 4]


@pytest.mark.parametrize("ticket", ["", "made-up", "x" * 2000, "%00", "a&ticket=b"])
def test_a_ticket_that_was_never_issued_is_refused(stack: Stack, ticket: str) -> None:
    assert_refused(stack, ticket)


def test_an_expired_ticket_is_refused(stack: Stack, ann: Person) -> None:
    holder = {"user": ann.name, "org": None}
    embedded_connections(stack).issue_ticket(f"old-{ann.name}", holder, expires_at=int(time.time()) - 1)
    assert_refused(stack, f"old-{ann.name}")


def test_a_socket_belongs_to_the_user_of_its_ticket(stack: Stack, ann: Person, run: SilentRun) -> None:
    with Person(stack) as bob, socket_of(bob) as socket:
        error = socket.subscribe(run.run_id)
        assert (error["type"], error["error"]["type"]) == ("error", "not_found")
        run.append()
        assert socket.ask(PING) == PONG
    assert run.subscribers() == []
    with socket_of(ann) as socket:
        assert socket.subscribe(run.run_id)["type"] == "subscribed"


# ---- subscriptions


def test_a_subscriber_gets_what_was_and_then_what_is(ann: Person, run: SilentRun) -> None:
    run.append(4)
    with socket_of(ann) as socket:
        told = socket.subscribe(run.run_id, after=2)
        assert told == {"type": "subscribed", "run_id": run.run_id, "after": 2, "last_seq": 5}
        assert socket.numbers(3) == [3, 4, 5]
        run.append(2)
        run.append()
        assert socket.numbers(3) == [6, 7, 8]


def test_events_that_come_while_the_log_is_replayed_leave_no_gap(ann: Person, run: SilentRun) -> None:
    run.append(300)
    writer = threading.Thread(target=lambda: [run.append() for _ in range(60)])
    with socket_of(ann) as socket:
        writer.start()
        frames = [socket.subscribe(run.run_id)]  # a live event may be there before the word that we are subscribed
        writer.join()
        last = run.append()[0]
        while len(seen := {frame["event"]["seq"] for frame in frames if frame["type"] == "event"}) < last:
            frames.append(socket.frame())
    assert seen == set(range(1, last + 1))
    assert [frame["type"] for frame in frames].count("subscribed") == 1


def test_two_subscribers_both_get_everything_in_order(ann: Person, run: SilentRun) -> None:
    with socket_of(ann) as one, socket_of(ann) as other:
        for socket in (one, other):
            socket.subscribe(run.run_id)
            assert socket.numbers(1) == [1]
        for _ in range(20):
            run.append(2)
        assert one.numbers(40) == other.numbers(40) == list(range(2, 42))


def test_one_socket_follows_several_runs(stack: Stack, ann: Person, run: SilentRun) -> None:
    second = SilentRun(stack, ann.name)
    with socket_of(ann) as socket:
        for followed in (run, second):
            socket.subscribe(followed.run_id, after=1)
        run.append()
        assert socket.frame()["event"]["run_id"] == run.run_id
        second.append()
        assert socket.frame()["event"]["run_id"] == second.run_id


def test_subscribing_again_replays_and_doubles_nothing_that_is_live(ann: Person, run: SilentRun) -> None:
    with socket_of(ann) as socket:
        for _ in range(2):
            socket.subscribe(run.run_id)
            assert socket.numbers(1) == [1]
        run.append()
        assert socket.numbers(1) == [2]
        assert socket.ask(PING) == PONG


def test_after_unsubscribing_nothing_more_comes(ann: Person, run: SilentRun) -> None:
    with socket_of(ann) as leaving, socket_of(ann) as staying:
        for socket in (leaving, staying):
            socket.subscribe(run.run_id, after=1)
        told = leaving.ask({"action": "unsubscribe", "run_id": run.run_id})
        assert told == {"type": "unsubscribed", "run_id": run.run_id}
        run.append()
        assert staying.numbers(1) == [2]
        assert leaving.ask(PING) == PONG
        assert len(run.subscribers()) == 1


def test_what_one_does_not_follow_can_be_left(ann: Person) -> None:
    with socket_of(ann) as socket:
        assert socket.ask({"action": "unsubscribe", "run_id": NO_RUN})["type"] == "unsubscribed"


def test_a_subscriber_that_is_ahead_of_the_log_waits_for_what_comes(ann: Person, run: SilentRun) -> None:
    with socket_of(ann) as socket:
        assert socket.subscribe(run.run_id, after=limits.MAX_SEQ)["last_seq"] == 1
        run.append()
        assert socket.numbers(1) == [2]


def test_a_big_event_arrives_as_a_preview_in_a_small_frame(ann: Person, run: SilentRun) -> None:
    with socket_of(ann) as socket:
        socket.subscribe(run.run_id, after=1)
        run.append(text="🦆\x00\\" * 20_000)
        raw = socket.connection.recv(timeout=30)
        assert isinstance(raw, str)
        assert len(raw.encode()) < limits.MAX_FRAME_BYTES
        data = json.loads(raw)["event"]["data"]
        assert (data["truncated"], data["preview"][:9]) == (True, '{"text":"')
        assert data["size"] > 100_000
        stored = run_data(ann.stack, data["data_key"])
        assert stored == {"text": "🦆\x00\\" * 20_000}


def run_data(stack: Stack, key: str) -> object:
    found = stack.aws("s3").get_object(Bucket=stack.outputs["ArtifactsBucket"], Key=key)
    return json.loads(found["Body"].read())


def test_all_runs_of_ones_own_are_followed_with_one_word_also_those_to_come(
    stack: Stack, ann: Person, run: SilentRun
) -> None:
    with Person(stack) as bob, socket_of(ann) as socket:
        told = socket.ask({"action": "subscribe", "runs": "all"})
        head = {"run_id": run.run_id, "status": "queued", "last_seq": 1}
        assert told == {"type": "subscribed", "runs": "all", "heads": [head]}
        SilentRun(stack, bob.name).append()
        later = SilentRun(stack, ann.name)
        run.append()
        seen = {(frame["event"]["run_id"], frame["event"]["seq"]) for frame in (socket.frame(), socket.frame())}
        assert seen == {(later.run_id, 1), (run.run_id, 2)}
        assert socket.ask({"action": "unsubscribe", "runs": "all"})["type"] == "unsubscribed"
        run.append()
        assert socket.ask(PING) == PONG


# ---- speaking to runs


def test_a_run_is_spoken_to_raised_and_cancelled_over_the_socket(ann: Person, run: SilentRun) -> None:
    with socket_of(ann) as socket:
        message = {"action": "message", "run_id": run.run_id, "text": "Mind the gap", "key": "k-1"}
        answers = [socket.ask(message) for _ in range(2)]
        assert [(answer["type"], answer["key"], answer["n"]) for answer in answers] == [("ack", "k-1", 1)] * 2
        changed = socket.ask(message | {"text": "Mind the step"})
        assert (changed["type"], changed["key"], changed["error"]["type"]) == ("error", "k-1", "conflict")
        raised = socket.ask({"action": "budget", "run_id": run.run_id, "max_turns": 60})
        assert (raised["type"], ann.run(run.run_id)["budget"]["max_turns"]) == ("ack", 60)
        assert socket.ask({"action": "pause", "run_id": run.run_id})["error"]["type"] == "conflict"
        cancelled = [socket.ask({"action": "cancel", "run_id": run.run_id}) for _ in range(2)]
        assert [answer["run"]["cancel_requested"] for answer in cancelled] == [True] * 2
    types = [event["type"] for event in ann.events(run.run_id)]
    assert types == ["run_queued", "run_message_received", "agent_budget_extended"]


def test_a_suspended_run_is_answered_over_the_socket_and_goes_on(stack: Stack, ann: Person) -> None:
    asks = says(tool("ask_user", question="Which colour?"))
    task = new_task(stack, plans(), asks, finishes())
    run_id = ann.start({"task": task})
    ann.suspended(run_id)
    with socket_of(ann) as socket:
        answer = socket.ask({"action": "message", "run_id": run_id, "text": "Blue, " + "so blue. " * 800})
        assert answer["type"] == "ack", answer
    assert ann.end_of(run_id)["status"] == "completed"


def test_a_run_of_somebody_else_can_not_be_controlled(stack: Stack, run: SilentRun) -> None:
    with Person(stack) as bob, socket_of(bob) as socket:
        assert socket.ask({"action": "cancel", "run_id": run.run_id})["error"]["type"] == "not_found"


# ---- what the model is just saying


def test_words_of_the_model_are_shown_while_it_speaks_and_are_no_events(stack: Stack, ann: Person) -> None:
    speech = "".join(f"word {number} " for number in range(150))
    task = new_task(stack, plans(), says(text=speech, pace_seconds=0.05), finishes())
    with socket_of(ann) as socket:
        assert socket.ask({"action": "subscribe", "runs": "all"})["type"] == "subscribed"
        run_id = ann.start({"task": task})
        frames = _until_said(socket)
    deltas = [frame for frame in frames if frame["type"] == "agent_delta"]
    assert {(delta["run_id"], delta["ephemeral"], delta["kind"]) for delta in deltas} == {(run_id, True, "text")}
    assert all(speech[delta["offset"] :].startswith(delta["text"]) for delta in deltas)
    assert ann.end_of(run_id)["status"] == "completed"
    assert "agent_delta" not in {event["type"] for event in ann.events(run_id)}


def _until_said(socket: Socket) -> list[dict[str, Any]]:
    frames = [socket.frame()]
    while (frames[-1].get("event") or {}).get("type") != "agent_message":
        frames.append(socket.frame())
    return frames


# ---- rubbish


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("not JSON", None),
        ("", None),
        ("[1]", None),
        ('"ping"', None),
        (b"\xff\xfe\x00", None),
        ("x" * 20_000, None),
        ("[" * 20_000, None),
        ('{"action":' * 3_000, None),
        ({"action": "dance"}, "action"),
        ({"action": ["ping"]}, "action"),
        ({"action": None}, "action"),
        ({"action": "$connect"}, "action"),
        ({"action": "$disconnect"}, "action"),
        ({"action": "$default"}, "action"),
        ({"run_id": NO_RUN}, "action"),
        ({"action": "ping", "x" * 30_000: 1}, "x" * limits.MAX_NAME_CHARS),
        ('{"action": "ping", "\\ud800": 1}', "?"),
        ({"action": "subscribe"}, "run_id"),
        ({"action": "subscribe", "run_id": {"S": NO_RUN}}, "run_id"),
        ({"action": "subscribe", "run_id": NO_RUN, "after": -1}, "after"),
        ({"action": "subscribe", "run_id": NO_RUN, "after": 10**40}, "after"),
        (f'{{"action": "subscribe", "run_id": "{NO_RUN}", "after": 1{"0" * 5_000}}}', None),
        ({"action": "subscribe", "run_id": NO_RUN, "after": "7"}, "after"),
        ({"action": "subscribe", "run_id": NO_RUN, "after": 1.5}, "after"),
        ({"action": "subscribe", "run_id": NO_RUN, "after": None}, "after"),
    ],
)  # fmt: skip
def test_rubbish_gets_an_error_frame_and_the_socket_stays_usable(
    ann: Person, run: SilentRun, message: object, field: str | None
) -> None:
    with socket_of(ann) as socket:
        frame = socket.ask(message)
        error = frame["error"]
        assert (frame["type"], error["type"], error["retryable"]) == ("error", "validation_error", False)
        assert error["message"]
        assert error["request_id"]
        assert [detail["field"] for detail in error.get("details", [])] == ([field] if field else [])
        assert socket.ask(PING) == PONG
        assert socket.subscribe(run.run_id)["type"] == "subscribed"
        assert socket.numbers(1) == [1]


def test_a_run_that_does_not_exist_is_an_error_frame(ann: Person) -> None:
    with socket_of(ann) as socket:
        assert socket.subscribe(NO_RUN)["error"]["type"] == "not_found"
        assert socket.ask(PING) == PONG


def test_a_ping_in_a_binary_message_is_a_ping(ann: Person) -> None:
    with socket_of(ann) as socket:
        assert socket.ask(json.dumps(PING).encode()) == PONG


# ---- connections that die


def test_a_dead_connection_holds_nobody_up_and_is_deleted(ann: Person, run: SilentRun) -> None:
    with socket_of(ann) as socket:
        socket.subscribe(run.run_id, after=1)
        run.append()
        assert socket.numbers(1) == [2]
        dead = run.follow_with_a_dead_connection()
        assert dead in run.subscribers()
        run.append(3)
        assert socket.numbers(3) == [3, 4, 5]
        wait_for(lambda: True if dead not in run.subscribers() else None)
        run.append()
        assert socket.numbers(1) == [6]
        assert len(run.subscribers()) == 1


def test_a_socket_that_is_torn_down_without_a_goodbye_is_forgotten(ann: Person, run: SilentRun) -> None:
    with socket_of(ann) as staying, socket_of(ann) as torn:
        for socket in (staying, torn):
            socket.subscribe(run.run_id, after=1)
        torn.connection.socket.shutdown(2)
        wait_for(lambda: True if len(run.subscribers()) == 1 else None)
        run.append()
        assert staying.numbers(1) == [2]


def test_a_socket_that_is_closed_leaves_no_row_behind(ann: Person, run: SilentRun) -> None:
    with socket_of(ann) as socket:
        socket.subscribe(run.run_id)
        (connection,) = run.subscribers()
    wait_for(lambda: None if run.subscribers() else True)
    table = ann.stack.outputs["ConnectionsTable"]
    left = ann.stack.aws("dynamodb").query(
        TableName=table,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": f"CONN#{connection}"}},
    )
    assert left["Items"] == []
