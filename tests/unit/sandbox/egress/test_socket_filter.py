"""The filter's program, run step by step for both architectures: this machine's kernel can only show its own."""

from __future__ import annotations

import errno
import os
import struct
from types import SimpleNamespace

import pytest

from sandbox_task.isolation.egress import socket_filter
from sandbox_task.isolation.egress.socket_filter import ALLOW, NOTIFY, Calls, calls, program
from sandbox_task.isolation.wall import WallError

REFUSED = 0x00050000
UNIX, INET, INET6, NETLINK, PACKET, VSOCK = 1, 2, 10, 16, 17, 40
STREAM, DGRAM, RAW, SEQPACKET = 1, 2, 3, 5
CLOEXEC_NONBLOCK = 0o2004000
FAST_OPEN = 0x20000000


@pytest.fixture(params=["x86_64", "aarch64"])
def names(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Calls:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=request.param))
    return calls()


def decide(names: Calls, number: int, *arguments: int, architecture: int | None = None) -> int:
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, architecture or names.architecture, 0, *padded)
    steps = list(struct.iter_unpack("=HBBI", program(names)))
    value, at = 0, 0
    while True:
        code, if_true, if_false, operand = steps[at]
        at += 1
        if code == 0x06:
            return int(operand)
        if code == 0x20:
            value = struct.unpack_from("=I", data, operand)[0]
        elif code == 0x54:
            value &= operand
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
            at += if_true if holds else if_false


@pytest.mark.parametrize(
    "kind",
    [
        (UNIX, STREAM, 0), (INET, STREAM, 0), (INET, STREAM, 6), (INET6, STREAM | CLOEXEC_NONBLOCK, 6),
        (NETLINK, RAW | CLOEXEC_NONBLOCK, 0), (NETLINK, DGRAM, 0),
    ],
)  # fmt: skip
def test_streams_and_questions_about_routes_are_allowed(names: Calls, kind: tuple[int, int, int]) -> None:
    assert decide(names, names.socket, *kind) == ALLOW


@pytest.mark.parametrize(
    "kind",
    [
        (INET, DGRAM, 0), (INET6, DGRAM | CLOEXEC_NONBLOCK, 17), (INET, RAW, 1), (INET, STREAM, 132),
        (INET, STREAM, 262), (INET, SEQPACKET, 0), (UNIX, DGRAM, 0), (UNIX, RAW, 0), (UNIX, SEQPACKET, 0),
        (PACKET, RAW, 3), (VSOCK, STREAM, 0), (NETLINK, RAW, 16), (38, SEQPACKET, 0), (0, STREAM, 0), (9999, STREAM, 0),
    ],
)  # fmt: skip
def test_every_other_kind_of_socket_is_refused(names: Calls, kind: tuple[int, int, int]) -> None:
    assert decide(names, names.socket, *kind) == REFUSED | errno.EACCES


def test_the_upper_half_of_an_argument_hides_nothing(names: Calls) -> None:
    assert decide(names, names.socket, INET | 1 << 32, DGRAM | 1 << 32, 0) == REFUSED | errno.EACCES
    assert decide(names, names.sendto, 3, 0, 0, FAST_OPEN | 1 << 40) == REFUSED | errno.EPERM


def test_pairs_are_streams_or_packets_between_two_ends(names: Calls) -> None:
    assert decide(names, names.socketpair, UNIX, STREAM, 0) == ALLOW
    assert decide(names, names.socketpair, UNIX, SEQPACKET, 0) == ALLOW
    assert decide(names, names.socketpair, UNIX, DGRAM, 0) == REFUSED | errno.EACCES
    assert decide(names, names.socketpair, 30, STREAM, 0) == REFUSED | errno.EACCES


def test_every_connection_is_asked_for(names: Calls) -> None:
    assert decide(names, names.connect, 3, 0, 16) == NOTIFY


def test_a_message_may_not_carry_a_first_target(names: Calls) -> None:
    for number, at in ((names.sendto, 3), (names.sendmsg, 2), (names.sendmmsg, 3)):
        assert decide(names, number, *[0] * at, FAST_OPEN) == REFUSED | errno.EPERM
        assert decide(names, number, *[0] * at, 0x4000) == ALLOW


def test_what_does_it_unseen_is_refused_and_the_rest_is_none_of_its_business(names: Calls) -> None:
    assert {decide(names, number) for number in names.refused} == {REFUSED | errno.EPERM}
    assert decide(names, 1) == ALLOW


def test_calls_by_another_numbering_are_refused(names: Calls) -> None:
    assert decide(names, names.connect, architecture=0x40000003) == REFUSED | errno.ENOSYS
    assert decide(names, names.connect | 0x40000000) == REFUSED | errno.ENOSYS


def test_a_machine_that_is_not_known_gets_no_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="riscv64"))
    with pytest.raises(WallError, match="riscv64"):
        socket_filter.calls()
