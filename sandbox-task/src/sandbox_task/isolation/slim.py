"""The few things of the standard library that the code behind the wall needs, without what its modules bring along.

`socket`, `signal`, `selectors`, `contextlib`, `json` and `base64` read enum, re, functools and collections first: that
would be a third of the time that the wall takes to go up. What is here is used as it is there. Carried to B's
interpreter (see `carrying`): Python 3.9.
"""

from __future__ import annotations

import _socket as socket  # all but the class, which is below
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    import signal
    from collections import deque
    from collections.abc import Sequence
    from typing import Any, NoReturn, Self
else:
    import _signal as signal  # the same calls; its numbers are numbers only
    import posix as os  # the same calls; nothing of paths and of the environment
    from _collections import deque

NULL = "/dev/null"
_FD = struct.calcsize("i")
_ESCAPED = {**{number: f"\\u{number:04x}" for number in range(0x20)}, ord('"'): '\\"', ord("\\"): "\\\\"}


class Socket(socket.socket):
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def socketpair() -> tuple[Socket, Socket]:
    one, other = socket.socketpair()
    return Socket(fileno=one.detach()), Socket(fileno=other.detach())


def send_fds(sock: Socket, data: bytes, fds: Sequence[int]) -> int:
    return sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))])


def recv_fds(sock: Socket, size: int, at_most: int) -> tuple[bytes, list[int]]:
    data, ancillary, _flags, _address = sock.recvmsg(size, socket.CMSG_LEN(at_most * _FD))
    fds = (struct.unpack(f"{len(content) // _FD}i", content) for _level, _kind, content in ancillary)
    return data, [fd for some in fds for fd in some]


def open_null() -> int:
    return os.open(NULL, os.O_RDONLY)


def leave() -> NoReturn:
    """At once: what an interpreter does at its end takes time, and is the parent's business in a forked one."""
    os._exit(0)  # noqa: SLF001 - it has no other name


class suppress:  # noqa: N801 - as in contextlib
    def __init__(self, *errors: type[BaseException]) -> None:
        self.errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self.errors)


def as_json(value: Any) -> str:
    """Of what answers consist of: objects, lists, text, whole numbers, true and false."""
    if isinstance(value, str):
        return '"' + value.translate(_ESCAPED) + '"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{as_json(name)}:{as_json(each)}" for name, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(as_json, value)) + "]"
    return str(value).lower()


__all__ = [
    "NULL",
    "Socket",
    "as_json",
    "deque",
    "leave",
    "open_null",
    "os",
    "recv_fds",
    "send_fds",
    "signal",
    "socket",
    "socketpair",
    "suppress",
]
