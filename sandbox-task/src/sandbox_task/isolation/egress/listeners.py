"""Who listens at a TCP port of this machine.

Part of what is given to B's interpreter as text (see `executor`): standard library only, Python 3.9.
"""

# Importing pathlib would be half of the time that the wall takes to go up.
# ruff: noqa: PTH123

from __future__ import annotations

import struct

from sandbox_task.isolation.record import Record
from sandbox_task.isolation.slim import Socket, socket, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LISTEN = 10
_SOCK_DIAG, _BY_FAMILY, _DUMP = 4, 20, 0x301
_ERROR, _DONE = 2, 3
_HEADER = struct.Struct("=IHHII")
_OWNER_AT = 64  # in a row, after the header


class Listener(Record):
    address: bytes
    owner: int


def listeners(port: int) -> list[Listener]:
    try:
        return [row for family in (socket.AF_INET, socket.AF_INET6) for row in _ask(family, port)]
    except OSError:  # a kernel without this service; its tables take long to read where many sockets are possible
        return [row for name in ("tcp", "tcp6") for row in _read(f"/proc/self/net/{name}", port)]


def _ask(family: int, port: int) -> Iterator[Listener]:
    wanted = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, 1 << _LISTEN) + struct.pack(">H46x", port)
    with Socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as line:
        line.settimeout(1)
        line.send(_HEADER.pack(_HEADER.size + len(wanted), _BY_FAMILY, _DUMP, 1, 0) + wanted)
        while True:
            data, at = line.recv(1 << 16), 0
            while at < len(data):
                length, kind, *_ = _HEADER.unpack_from(data, at)
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", data, at + _HEADER.size)[0], "sock_diag")
                yield _row(data[at + _HEADER.size : at + length])
                at += (length + 3) & ~3


def _row(data: bytes) -> Listener:
    address = data[8:12] if data[0] == socket.AF_INET else data[8:24]
    return Listener(address, struct.unpack_from("=I", data, _OWNER_AT)[0])


def _read(table: str, port: int) -> Iterator[Listener]:
    with suppress(FileNotFoundError), open(table, encoding="ascii") as file:  # a kernel may have no IPv6
        for line in file:
            fields = line.split()
            address, _, number = fields[1].partition(":")
            if fields[3] == f"{_LISTEN:02X}" and int(number, 16) == port:
                words = [int(address[at : at + 8], 16) for at in range(0, len(address), 8)]
                yield Listener(struct.pack(f"={len(words)}I", *words), int(fields[7]))
