"""Frames, subscriptions and tickets."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandpiper import limits
from sandpiper.errors import AuthenticationError, SandpiperError
from sandpiper.logic import frames, tickets
from sandpiper.logic.subscriptions import runs_of
from sandpiper.models.events import NewEvent
from sandpiper.ports import Stuck
from tests.unit.logic.world import ANN, BOB, World


def send(world: World, message: Any, connection_id: str = "c1") -> list[dict[str, Any]]:
    text = message if isinstance(message, str) else frames.encode(message).decode()
    world.subscriptions.receive(connection_id, text, "req-1")
    return world.frames(connection_id) if connection_id in world.sockets.frames else []


def test_a_ticket_opens_one_socket_once(world: World) -> None:
    ticket = tickets.issue(ANN, world.connections, world.clock).ticket
    world.subscriptions.connect("c1", ticket)
    assert world.connections.identity("c1") == {"user": "ann", "org": "acme"}
    with pytest.raises(AuthenticationError):
        world.subscriptions.connect("c2", ticket)


def test_a_ticket_lasts_a_minute(world: World) -> None:
    ticket = tickets.issue(ANN, world.connections, world.clock)
    assert (ticket.expires_at - world.clock.now()).total_seconds() == limits.TICKET_SECONDS
    world.clock.advance(limits.TICKET_SECONDS)
    with pytest.raises(AuthenticationError):
        world.subscriptions.connect("c1", ticket.ticket)


@pytest.mark.parametrize("ticket", ["", "made-up"])
def test_a_ticket_that_was_never_issued_opens_nothing(world: World, ticket: str) -> None:
    with pytest.raises(AuthenticationError):
        world.subscriptions.connect("c1", ticket)


def test_subscribing_replays_the_log_in_order(world: World) -> None:
    run_id = world.dispatched()
    world.connect("c1")
    first, *events = send(world, {"action": "subscribe", "run_id": run_id})
    assert first == {"type": "subscribed", "run_id": run_id, "after": 0, "last_seq": 2}
    assert [(frame["type"], frame["event"]["seq"], frame["event"]["type"]) for frame in events] == [
        ("event", 1, "run_queued"),
        ("event", 2, "run_dispatched"),
    ]
    assert world.connections.subscribers(run_id) == ["c1"]


def test_a_reconnecting_client_gets_only_what_it_missed(world: World) -> None:
    run_id = world.dispatched()
    world.connect("c1")
    frames_sent = send(world, {"action": "subscribe", "run_id": run_id, "after": 1})
    assert [frame["event"]["seq"] for frame in frames_sent[1:]] == [2]


def test_a_log_longer_than_a_page_is_replayed_whole(world: World) -> None:
    run_id = world.start()
    for _ in range(2 * limits.MAX_PAGE + 5):
        world.runs.append(run_id, [NewEvent(type="agent_message", data={})])
    world.connect("c1")
    sent = send(world, {"action": "subscribe", "run_id": run_id})
    assert [frame["event"]["seq"] for frame in sent[1:]] == list(range(1, 2 * limits.MAX_PAGE + 7))


def test_another_owners_run_does_not_exist(world: World) -> None:
    run_id = world.start(BOB)
    world.connect("c1", ANN)
    (frame,) = send(world, {"action": "subscribe", "run_id": run_id})
    assert (frame["type"], frame["error"]["type"]) == ("error", "not_found")
    assert world.connections.subscribers(run_id) == []


def test_unsubscribing_stops_the_events(world: World) -> None:
    run_id = world.start()
    world.connect("c1")
    send(world, {"action": "subscribe", "run_id": run_id})
    assert send(world, {"action": "unsubscribe", "run_id": run_id})[-1] == {"type": "unsubscribed", "run_id": run_id}
    assert world.connections.subscribers(run_id) == []


def test_a_ping_is_answered(world: World) -> None:
    world.connect("c1")
    assert send(world, {"action": "ping"}) == [{"type": "pong"}]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("rubbish", None),
        ("", None),
        ("[1]", None),
        ('"ping"', None),
        ("[" * 100_000, None),
        ({"action": "dance"}, "action"),
        ({"action": ["ping"]}, "action"),
        ({}, "action"),
        ({"action": "ping", "x": 1}, "x"),
        ({"action": "subscribe"}, "run_id"),
        ({"action": "subscribe", "run_id": "../x"}, "run_id"),
        ({"action": "subscribe", "run_id": 5}, "run_id"),
        ({"action": "subscribe", "run_id": "run-" + "0" * 26, "after": -1}, "after"),
        ({"action": "subscribe", "run_id": "run-" + "0" * 26, "after": True}, "after"),
        ({"action": "subscribe", "run_id": "run-" + "0" * 26, "after": "1"}, "after"),
        ({"action": "subscribe", "run_id": "run-" + "0" * 26, "after": 10**40}, "after"),
        ({"action": "unsubscribe", "run_id": "run-" + "0" * 26, "after": 1}, "after"),
        ({"action": "subscribe", "runs": "mine"}, "runs"),
        ({"action": "subscribe", "runs": "all", "after": 1}, "after"),
        ({"action": "unsubscribe", "runs": "all", "run_id": "run-" + "0" * 26}, "run_id"),
        ({"action": "ping", "x" * limits.MAX_FRAME_BYTES: 1}, "x" * limits.MAX_NAME_CHARS),
        ('{"action": "ping", "\\ud800": 1}', "?"),
    ],
)
def test_rubbish_gets_an_error_frame_and_the_connection_stays(world: World, message: Any, field: str | None) -> None:
    world.connect("c1")
    (frame,) = send(world, message)
    error = frame["error"]
    assert (frame["type"], error["type"], error["request_id"]) == ("error", "validation_error", "req-1")
    assert [detail["field"] for detail in error.get("details", [])] == ([field] if field else [])
    assert send(world, {"action": "ping"})[-1] == {"type": "pong"}


def test_a_connection_that_we_have_forgotten_is_told_so(world: World) -> None:
    world.sockets.connect("c1")
    (frame,) = send(world, {"action": "ping"})
    assert frame["error"]["type"] == "not_found"


def test_a_socket_that_is_gone_is_forgotten(world: World) -> None:
    run_id = world.start()
    world.connect("c1")
    send(world, {"action": "subscribe", "run_id": run_id})
    world.sockets.disconnect("c1")
    send(world, {"action": "ping"})
    assert world.connections.subscribers(run_id) == []


def test_a_socket_that_takes_nothing_is_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(connection_id: str, _frame: bytes) -> None:
        raise Stuck(connection_id)

    run_id = world.start()
    world.connect("c1")
    send(world, {"action": "subscribe", "run_id": run_id})
    monkeypatch.setattr(world.sockets, "send", hang)
    send(world, {"action": "ping"})
    assert world.connections.subscribers(run_id) == []


def test_disconnecting_ends_every_subscription(world: World) -> None:
    run_id = world.start()
    world.connect("c1")
    send(world, {"action": "subscribe", "run_id": run_id})
    world.subscriptions.disconnect("c1")
    assert world.connections.subscribers(run_id) == []


def test_a_log_that_is_too_long_for_one_answer_is_gone_on_with_where_it_stopped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = world.start()
    for _ in range(2 * limits.MAX_PAGE):
        world.runs.append(run_id, [NewEvent(type="agent_message", data={})])
    world.connect("c1")
    send_frame = world.sockets.send

    def slowly(connection_id: str, frame: bytes) -> None:
        send_frame(connection_id, frame)
        world.clock.advance(0.1)

    monkeypatch.setattr(world.sockets, "send", slowly)
    last, answers = 2 * limits.MAX_PAGE + 1, 0
    after, seen = 0, list[int]()
    while after < last:
        world.sockets.frames["c1"].clear()
        sent = send(world, {"action": "subscribe", "run_id": run_id, "after": after})
        seen += [frame["event"]["seq"] for frame in sent if frame["type"] == "event"]
        answers, after = answers + 1, seen[-1]
        expected = {"type": "more", "run_id": run_id, "after": after, "last_seq": last}
        assert [frame for frame in sent if frame["type"] == "more"] == ([expected] if after < last else [])
    assert seen == list(range(1, last + 1))
    assert answers == 3  # 150 frames in 15 seconds, the first of them is the word that one is subscribed


def test_all_runs_of_ones_own_are_followed_also_those_that_come_later(world: World) -> None:
    first, _others = world.dispatched(), world.start(BOB)
    world.connect("c1")
    (told,) = send(world, {"action": "subscribe", "runs": "all"})
    assert told == {
        "type": "subscribed",
        "runs": "all",
        "heads": [{"run_id": first, "status": "provisioning", "last_seq": 2}],
    }
    assert world.connections.subscribers(runs_of("ann")) == ["c1"]
    assert send(world, {"action": "unsubscribe", "runs": "all"})[-1] == {"type": "unsubscribed", "runs": "all"}
    assert world.connections.subscribers(runs_of("ann")) == []


def test_what_subscribed_tells_of_the_most_runs_fits_into_a_frame() -> None:
    head = {"run_id": "run-" + "0" * 26, "status": "provisioning", "last_seq": limits.MAX_SEQ}
    told = {"type": "subscribed", "runs": "all", "heads": [head] * limits.MAX_HEADS}
    assert len(frames.encode(told)) < limits.MAX_FRAME_BYTES


@given(st.text())
def test_no_text_makes_the_parser_fail_otherwise_than_in_words(text: str) -> None:
    with contextlib.suppress(SandpiperError):
        frames.parse(text)
