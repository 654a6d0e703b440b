"""Backend `uid`: one process becomes two, the broker and, beneath it and behind its filter, the executor.

Part of what is given to B's interpreter (see `executor`): standard library only, Python 3.9.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

from sandbox_task.isolation.egress.notifications import LIBC, install
from sandbox_task.isolation.egress.socket_filter import Unsupported
from sandbox_task.isolation.processes import close_to_others, knows_scopes, scope_signals, signal_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_PR_SET_PDEATHSIG = 1


def stand_guard(doors: frozenset[int]) -> Callable[[], None]:
    """Returns in a child, for which and for whose children the network is closed but for `doors`. What it returns
    waits until the broker is there: both have much to read until then."""
    ours, theirs = socket.socketpair()
    if knows_scopes():
        scope_signals()
    child = os.fork()
    if child == 0:
        ours.close()
        become_filtered(theirs)
    else:
        theirs.close()
        guard(child, ours, doors)
    return lambda: await_broker(theirs)


def become_filtered(line: socket.socket) -> None:
    LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        listener = install()
    except Unsupported as error:
        sys.exit(str(error))
    socket.send_fds(line, [b"l"], [listener])
    os.close(listener)  # who holds it decides


def await_broker(line: socket.socket) -> None:
    with line:
        if not line.recv(1):
            sys.exit("the broker of the network did not start")


def guard(child: int, line: socket.socket, doors: frozenset[int]) -> NoReturn:
    try:
        close_to_others()
        from sandbox_task.isolation.egress.broker import Broker  # noqa: PLC0415 - beside the child, which reads its own

        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the executor's line to A is not ours
        said, fds, _, _ = socket.recv_fds(line, 1, 1)
        if said:
            line.sendall(b"g")
            line.close()
            Broker(fds[0], doors).serve(child)
    finally:
        if knows_scopes():
            signal_all(signal.SIGKILL)  # an executor that was killed leaves others behind
        os._exit(0)
