"""Where a connection of B's may lead in backend `uid`: to A's doors and to B's own listeners, on this machine.

Part of what is given to B's interpreter as text (see `executor`): standard library only, Python 3.9.
"""

# Importing pathlib would be half of the time that the wall takes to go up.

from __future__ import annotations

import errno
import stat
import struct

from sandbox_task.isolation.egress.listeners import listeners
from sandbox_task.isolation.record import Record
from sandbox_task.isolation.slim import Socket, os, socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

_MAPPED = b"\0" * 10 + b"\xff\xff"
_ANY4, _ANY6, _LOOPBACK6 = b"\0" * 4, b"\0" * 16, b"\0" * 15 + b"\1"
_PATH = 2


class Denied(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(os.strerror(number))
        self.number = number


class Way(Record):
    family: int
    target: Any


def find_way(task: int, fd: int, raw: bytes, doors: frozenset[int], taken: Collection[str]) -> Way:
    """`raw` is the address as it was copied from the caller; `taken` are sockets that lead somewhere already.

    Raises Denied or OSError."""
    if len(raw) < _PATH:
        raise Denied(errno.EINVAL)
    _require_new_socket(task, fd, taken)
    (family,) = struct.unpack("=H", raw[:2])
    if family == socket.AF_UNIX:
        return Way(family, _own_path(task, raw[2:]))
    address, port = _loopback(family, raw)
    if port not in doors:
        _require_own_listener(address, port)
    text = socket.inet_ntop(socket.AF_INET if len(address) == 4 else socket.AF_INET6, address)
    return Way(family, _as_asked(family, text, port))


def begin(way: Way) -> tuple[Socket, int]:
    """A socket of ours on its way there, and what the kernel said to it. Raises OSError or Denied."""
    ours = Socket(way.family, socket.SOCK_STREAM)
    ours.settimeout(0)
    try:
        problem = ours.connect_ex(way.target)
        if way.family == socket.AF_UNIX and problem == 0:
            _require_own_peer(ours)
    except (OSError, Denied):
        ours.close()
        raise
    return ours, problem


def _loopback(family: int, raw: bytes) -> tuple[bytes, int]:
    """The address as the kernel will take it (nothing stands for loopback), or Denied."""
    if family == socket.AF_INET and len(raw) >= 8:
        address = raw[4:8]
    elif family == socket.AF_INET6 and len(raw) >= 24:
        address = raw[8:24]
    else:
        raise Denied(errno.EACCES)
    if address.startswith(_MAPPED) and len(address) == 16:
        address = address[12:]
    address = {_ANY4: b"\x7f\0\0\1", _ANY6: _LOOPBACK6}.get(address, address)
    if address != _LOOPBACK6 and not (len(address) == 4 and address[0] == 127):
        raise Denied(errno.EACCES)
    return address, struct.unpack(">H", raw[2:4])[0]


def _as_asked(family: int, text: str, port: int) -> Any:
    if family == socket.AF_INET:
        return (text, port)
    return (text if ":" in text else f"::ffff:{text}", port, 0, 0)


def _require_own_listener(address: bytes, port: int) -> None:
    """Whoever could take the connection has to be B."""
    takers = {address, _ANY4, _ANY6, _MAPPED + address} if len(address) == 4 else {address, _ANY6}
    owners = {listener.owner for listener in listeners(port) if listener.address in takers}
    if not owners:
        raise Denied(errno.ECONNREFUSED)
    if owners != {os.geteuid()}:
        raise Denied(errno.EACCES)


def _require_new_socket(task: int, fd: int, taken: Collection[str]) -> None:
    try:
        name = os.readlink(f"/proc/{task}/fd/{fd}")
    except FileNotFoundError as error:
        raise Denied(errno.EBADF) from error
    if not name.startswith("socket:"):
        raise Denied(errno.ENOTSOCK)
    if name in taken:
        raise Denied(errno.EISCONN)


def name_of(sock: Socket) -> str:
    """As /proc shows it, in whatever process."""
    return f"socket:[{os.fstat(sock.fileno()).st_ino}]"


def _own_path(task: int, raw: bytes) -> bytes:
    """A name that is no file is judged by who answers; of files, only B's own are even knocked at."""
    if raw.startswith(b"\0"):
        return raw
    path = raw.partition(b"\0")[0]
    if not path:
        raise Denied(errno.EINVAL)
    if not path.startswith(b"/"):
        path = f"/proc/{task}/cwd/".encode() + path
    status = os.stat(path)
    if not stat.S_ISSOCK(status.st_mode):
        raise Denied(errno.ECONNREFUSED)
    if status.st_uid != os.geteuid():
        raise Denied(errno.EACCES)
    return path


def _require_own_peer(ours: Socket) -> None:
    _pid, owner, _group = struct.unpack("=iII", ours.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if owner != os.geteuid():
        raise Denied(errno.EACCES)
