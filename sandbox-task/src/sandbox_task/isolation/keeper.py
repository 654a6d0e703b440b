"""Between the executor and a command: who starts it, tells how it ended, and holds together all that it starts.

Given to the interpreter behind the wall as text, as the executor is (see there).
"""

from __future__ import annotations

import marshal
import struct

from sandbox_task.isolation.kernel import adopt_orphans
from sandbox_task.isolation.record import Record
from sandbox_task.isolation.slim import NULL, Socket, leave, os, recv_fds, send_fds, signal, socketpair, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from sandbox_task.isolation.terminal import Attendant

too_early: list[int] = []


class Started(Record):
    command: int
    attendant: Attendant | None  # who has the other side of its terminal, if it has one

    def interrupt(self, *_: object) -> None:
        with suppress(ProcessLookupError, BrokenPipeError):
            if self.attendant is None:
                os.killpg(self.command, signal.SIGINT)
            else:
                self.attendant.interrupt()

    def wait(self) -> int:
        ended, status = 0, 0
        while ended != self.command:
            ended, status = os.wait()
        return status

    def finish(self) -> None:
        if self.attendant is not None:
            with suppress(ChildProcessError):  # it may have been killed
                self.attendant.finish()


def new_keeper() -> tuple[int, Socket]:
    ours, theirs = socketpair()
    pid = os.fork()
    if pid == 0:
        keep(theirs)
    theirs.close()
    return pid, ours


def hand_over(line: Socket, message: dict[str, Any], fds: list[int]) -> None:
    body = marshal.dumps(message)
    job = struct.pack(">I", len(body)) + body
    line.sendall(job[send_fds(line, job, fds) :])


def keep(line: Socket) -> NoReturn:
    """The life of a keeper: one command after the other, as long as none leaves something behind.

    Whatever loses its parent there becomes the keeper's child, so that the tree below it is all that the command
    started: daemons that forked twice and sessions of their own included.
    """
    try:
        adopt_orphans()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, remember)
        # The socket to A above all: while a copy of it is open, A does not notice that the executor is gone.
        os.closerange(3, line.fileno())
        os.closerange(line.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        while keep_one(line):
            pass
        while True:
            os.wait()
    finally:
        leave()


def keep_one(line: Socket) -> bool:
    """Whether this one is free for the next."""
    message, fds = receive(line)
    try:
        started = start(message, fds)
    except (OSError, ValueError) as error:
        line.sendall(marshal.dumps({"error": words(error), "free": True}))
        return True
    finally:
        for fd in fds:
            os.close(fd)
    signal.signal(signal.SIGINT, started.interrupt)
    if too_early:
        started.interrupt()
    status = started.wait()
    signal.signal(signal.SIGINT, remember)
    too_early.clear()
    started.finish()
    free = not has_children()
    line.sendall(marshal.dumps({"exit": os.waitstatus_to_exitcode(status), "free": free}))
    return free


def receive(line: Socket) -> tuple[dict[str, Any], list[int]]:
    """A command with its descriptors."""
    data, fds = recv_fds(line, 1 << 16, 4)
    if not data:
        leave()
    for fd in fds:
        os.set_inheritable(fd, False)  # noqa: FBT003 - its signature
    (length,) = struct.unpack(">I", data[:4])
    body = bytearray(data[4:])
    while len(body) < length:
        body += line.recv(1 << 16)
    return marshal.loads(body), fds  # noqa: S302 - the executor's


def start(message: dict[str, Any], fds: list[int]) -> Started:
    if "terminal" not in message:
        return Started(spawn(message, fds[0], *fds[1:2]), None)
    return start_in_terminal(message, fds)


def start_in_terminal(message: dict[str, Any], fds: list[int]) -> Started:
    # Reading it would be a tenth of the time that the wall takes to go up, and few commands need it.
    from sandbox_task.isolation.terminal import attend, open_terminal, spawn_at  # noqa: PLC0415

    leader, follower = open_terminal(*message["terminal"])
    attendant = None
    try:
        attendant = attend(leader, *fds[:2])
        return Started(spawn_at(follower, message), attendant)
    except BaseException:
        if attendant is not None:
            attendant.finish()
        raise
    finally:
        os.close(leader)
        os.close(follower)


def spawn(message: dict[str, Any], target: int, source: int | None = None) -> int:
    """Reading `subprocess` would be a tenth of the time that the wall takes to go up; and this process is there for
    one command at a time, so that it can go where that is to start."""
    os.chdir(message["cwd"])
    nothing = (os.POSIX_SPAWN_OPEN, 0, NULL, os.O_RDWR, 0)
    return os.posix_spawn(
        message["argv"][0],
        message["argv"],
        message["env"],
        file_actions=[
            nothing if source is None else (os.POSIX_SPAWN_DUP2, source, 0),
            *((os.POSIX_SPAWN_DUP2, target, number) for number in (1, 2)),
        ],
        setsid=True,
        setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # which Python ignores
    )


def has_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def remember(number: int, _frame: object) -> None:
    """An interrupt for a command that is only just being started. A handler in any case: what is ignored would be
    ignored by the commands, too."""
    too_early.append(number)


def words(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
    return str(error)
