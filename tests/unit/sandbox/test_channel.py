from __future__ import annotations

import json
import socket
import struct
from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.isolation.channel import Channel
from sandbox_task.isolation.wall import WallError, WallLost
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterator


class Liar:
    """The far end of a channel, in the hands of somebody who says what he likes."""

    def __init__(self) -> None:
        ours, self.sock = socket.socketpair()
        self.channel = Channel(ours)
        self.say({"hello": 1})
        self.channel.start()

    def say(self, message: Any) -> None:
        self.say_raw(json.dumps(message).encode())

    def say_raw(self, body: bytes) -> None:
        self.sock.sendall(struct.pack(">I", len(body)) + body)


@pytest.fixture
def liar() -> Iterator[Liar]:
    liar = Liar()
    yield liar
    liar.channel.close()
    liar.sock.close()


@pytest.mark.parametrize("number", [99, -1, "1", None, [1], {"a": 1}, 1.5])
def test_an_answer_that_nobody_asked_for_is_dropped(liar: Liar, number: Any) -> None:
    answer = liar.channel.request("read", {})
    liar.say({"id": number, "exit": 0})
    liar.say({"id": answer.number, "exit": 7})
    assert answer.wait(10)["exit"] == 7
    liar.channel.forget(answer)


def test_the_first_of_two_answers_counts(liar: Liar) -> None:
    first, second = liar.channel.request("start", {}), liar.channel.request("start", {})
    for code in (1, 2):
        liar.say({"id": first.number, "exit": code})
    liar.say({"id": second.number})
    second.wait(10)
    assert first.wait(10)["exit"] == 1
    liar.channel.forget(first)
    liar.channel.forget(second)


@pytest.mark.parametrize(
    "body",
    [b"no json", b"[1]", b"[" * 500_000, b"\xff\xfe", b"1" * 10_000],
    ids=["words", "list", "deep", "bytes", "number"],
)
def test_what_is_no_message_ends_the_channel_for_who_waits_and_who_comes(liar: Liar, body: bytes) -> None:
    answer = liar.channel.request("read", {})
    liar.say_raw(body)
    with pytest.raises(WallLost):
        answer.wait(10)
    liar.channel.forget(answer)
    with pytest.raises(WallLost):
        liar.channel.ask("read", {})
    assert liar.channel.is_lost


def test_more_than_an_answer_can_be_is_not_even_read(liar: Liar) -> None:
    answer = liar.channel.request("read", {})
    liar.sock.sendall(struct.pack(">I", limits.EXECUTOR_FRAME_BYTES + 1))
    with pytest.raises(WallLost):
        answer.wait(10)
    liar.channel.forget(answer)


def test_a_refusal_is_bounded_and_can_be_stored(liar: Liar) -> None:
    answer = liar.channel.request("read", {})
    liar.say({"id": answer.number, "error": "\ud800" + "x" * 100_000})
    with pytest.raises(WallError) as refusal:
        answer.wait(10)
    assert len(str(refusal.value).encode()) <= limits.WALL_ERROR_CHARS
    liar.channel.forget(answer)
