"""Backend `uid`: one process becomes two, the broker and, beneath it and behind its filter, the executor.

Part of what is given to B's interpreter (see `executor`): standard library only, Python 3.9.
"""

from __future__ import annotations

import sys

from sandbox_task.isolation.kernel import call, close_to_others, die_with_parent, filter_program, gain_no_privileges
from sandbox_task.isolation.landlock import knows_scopes, scope_signals
from sandbox_task.isolation.slim import Socket, leave, open_null, os, recv_fds, send_fds, signal, socketpair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_SET_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5


def stand_guard(doors: frozenset[int], seccomp: int, instructions: bytes) -> Callable[[], None]:
    """Returns in a child, for which and for whose children the network is closed but for `doors`. What it returns
    waits until the broker is there: both have much to read until then."""
    ours, theirs = socketpair()
    if knows_scopes():
        scope_signals()
    child = os.fork()
    if child == 0:
        ours.close()
        become_filtered(theirs, seccomp, instructions)
    else:
        theirs.close()
        guard(child, ours, doors)
    return lambda: await_broker(theirs)


def become_filtered(line: Socket, seccomp: int, instructions: bytes) -> None:
    die_with_parent(signal.SIGKILL)
    try:
        listener = install(seccomp, instructions)
    except OSError as error:
        sys.exit(f"the kernel can't close the network to commands: seccomp notifications are refused ({error})")
    send_fds(line, b"l", [listener])
    os.close(listener)  # who holds it decides


def install(seccomp: int, instructions: bytes) -> int:
    """From here on this process and all that it starts are filtered, for good. The end where its calls arrive."""
    gain_no_privileges()
    program = filter_program(instructions)
    try:
        return call("syscall", seccomp, _SET_MODE_FILTER, _NEW_LISTENER | _WAIT_KILLABLE, program)
    except OSError:  # the better one is not in every kernel
        return call("syscall", seccomp, _SET_MODE_FILTER, _NEW_LISTENER, program)


def await_broker(line: Socket) -> None:
    with line:
        if not line.recv(1):
            sys.exit("the broker of the network did not start")


def guard(child: int, line: Socket, doors: frozenset[int]) -> NoReturn:
    try:
        close_to_others()
        # beside the child, which reads its own
        from sandbox_task.isolation.egress.broker import Broker  # noqa: PLC0415

        os.dup2(open_null(), 0)  # the executor's line to A is not ours
        said, fds = recv_fds(line, 1, 1)
        if said:
            line.sendall(b"g")
            line.close()
            Broker(fds[0], doors).serve(child)
    finally:
        if knows_scopes():
            from sandbox_task.isolation.processes import signal_all  # noqa: PLC0415 - likewise

            signal_all(signal.SIGKILL)  # an executor that was killed leaves others behind
        leave()
