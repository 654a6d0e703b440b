"""The seccomp filter of backend `uid`: which kinds of socket B may make; where they lead is asked of the broker.

Only streams pass: TCP, where an address is given by `connect` alone, and Unix sockets. A datagram socket can name
another target with each message, in memory that no filter sees. Netlink is for asking about routes and interfaces.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from typing import TYPE_CHECKING, NamedTuple

from sandbox_task.isolation.wall import WallError

if TYPE_CHECKING:
    from collections.abc import Sequence

ALLOW = 0x7FFF0000
NOTIFY = 0x7FC00000
_ERRNO = 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _HAS_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
_FASTOPEN = 0x20000000
_TYPE = 0xF
_ROUTE = 0
_X32 = 0x40000000  # another numbering of the same calls on x86_64


class Calls(NamedTuple):
    architecture: int
    seccomp: int
    connect: int
    socket: int
    socketpair: int
    sendto: int
    sendmsg: int
    sendmmsg: int
    refused: tuple[int, ...]  # io_uring does all of this unseen; keys make the kernel ask the DNS


_CALLS = {
    "x86_64": Calls(0xC000003E, 317, 42, 41, 53, 44, 46, 307, (425, 426, 427, 248, 249, 250)),
    "aarch64": Calls(0xC00000B7, 277, 203, 198, 199, 206, 211, 269, (425, 426, 427, 217, 218, 219)),
}


def calls() -> Calls:
    """Raises WallError on a machine whose calls are not known."""
    machine = os.uname().machine
    if machine not in _CALLS:
        raise WallError(f"the network can't be closed to commands on {machine}")
    return _CALLS[machine]


def program(names: Calls) -> bytes:
    """What the kernel runs at each system call of B's."""
    no = _give(_ERRNO | errno.EACCES)
    steps = [
        *(_load(_ARCHITECTURE), _step(_EQUAL, names.architecture, 1, 0), _give(_ERRNO | errno.ENOSYS)),
        *(_load(_NUMBER), _step(_AT_LEAST, _X32, 0, 1), _give(_ERRNO | errno.ENOSYS)),
        *(step for number in names.refused for step in _at(number, [_give(_ERRNO | errno.EPERM)])),
        *_at(names.connect, [_give(NOTIFY)]),
        *(_at(names.sendto, _without_fast_open(3))),
        *(_at(names.sendmsg, _without_fast_open(2))),
        *(_at(names.sendmmsg, _without_fast_open(3))),
        *_at(names.socket, [*_socket_kinds(), no]),
        *_at(names.socketpair, [*_is(socket.AF_UNIX, (socket.SOCK_STREAM, socket.SOCK_SEQPACKET), None), no]),
        _give(ALLOW),
    ]
    return b"".join(steps)


def _socket_kinds() -> list[bytes]:
    internet = (0, socket.IPPROTO_TCP)  # SCTP and multipath TCP have other ways to name a target
    return [
        *_is(socket.AF_UNIX, (socket.SOCK_STREAM,), None),
        *_is(socket.AF_INET, (socket.SOCK_STREAM,), internet),
        *_is(socket.AF_INET6, (socket.SOCK_STREAM,), internet),
        *_is(socket.AF_NETLINK, (socket.SOCK_RAW, socket.SOCK_DGRAM), (_ROUTE,)),
    ]


def _is(family: int, types: Sequence[int], protocols: Sequence[int] | None) -> list[bytes]:
    """Allow this family with one of these types and protocols; otherwise go on."""
    found = [_give(ALLOW)]
    if protocols is not None:
        found = [_load_argument(2), *_one_of(protocols, found)]
    found = [_load_argument(1), _step(_AND, _TYPE, 0, 0), *_one_of(types, found)]
    return [_load_argument(0), *_one_of((family,), found)]


def _one_of(values: Sequence[int], then: list[bytes]) -> list[bytes]:
    last = len(values) - 1
    tests = [_step(_EQUAL, int(value), last - i, int(i == last) * len(then)) for i, value in enumerate(values)]
    return [*tests, *then]


def _without_fast_open(flags: int) -> list[bytes]:
    """A first message that carries its own target."""
    return [_load_argument(flags), _step(_HAS_BIT, _FASTOPEN, 0, 1), _give(_ERRNO | errno.EPERM), _give(ALLOW)]


def _at(number: int, then: list[bytes]) -> list[bytes]:
    """Assumes that the number of the call is loaded; `then` ends by giving an answer."""
    return [_step(_EQUAL, number, 0, len(then)), *then]


def _load(offset: int) -> bytes:
    return _step(_LOAD, offset, 0, 0)


def _load_argument(index: int) -> bytes:
    """The low half, which is all that the kernel takes of an int."""
    return _load(16 + 8 * index)


def _give(answer: int) -> bytes:
    return _step(_RETURN, answer, 0, 0)


def _step(code: int, operand: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)
