"""Backend `uid`: stands as B, but outside the filter, between B and the network.

Part of what is given to B's interpreter as text (see `executor`): standard library only, Python 3.9.

The address of each `connect` is copied; the broker dials the copy itself and puts its own socket in the caller's
place, so that nothing that the caller changes meanwhile counts. It needs no privilege: it is an ancestor of B with B's
user id, but closed to B. If it dies, B's calls fail and the executor dies with it.
"""

# Importing pathlib would be half of the time that the wall takes to go up.
# ruff: noqa: PTH123

from __future__ import annotations

import errno
import select

from sandbox_task.isolation.egress.connecting import Denied, begin, find_way, name_of
from sandbox_task.isolation.egress.notifications import (
    Notification,
    answer,
    is_valid,
    receive,
    replace_descriptor,
)
from sandbox_task.isolation.record import Record
from sandbox_task.isolation.slim import Socket, deque, os, socket

_ADDRESS_BYTES = 128
_REMEMBERED = 4096


class Dialling(Record):
    notification: Notification
    ours: Socket
    close_on_exec: bool


class Broker:
    def __init__(self, listener: int, doors: frozenset[int]) -> None:
        self.listener, self.doors = listener, doors
        self.poll = select.poll()
        self.dialling: dict[int, Dialling] = {}
        self.taken: deque[str] = deque(maxlen=_REMEMBERED)

    def serve(self, child: int) -> None:
        """As long as the executor lives."""
        ended = os.pidfd_open(child)
        self.poll.register(ended, select.POLLIN)
        self.poll.register(self.listener, select.POLLIN)
        while True:
            for fd, events in self.poll.poll():
                if fd == ended or (fd == self.listener and not events & select.POLLIN):
                    return
                if fd == self.listener:
                    self.hear()
                else:
                    self.arrive(fd)

    def hear(self) -> None:
        try:
            notification = receive(self.listener)
        except OSError:
            return  # the caller was ended
        try:
            self.consider(notification)
        except Denied as denied:
            answer(self.listener, notification, denied.number)
        except OSError as error:
            answer(self.listener, notification, error.errno or errno.EACCES)
        except Exception:
            answer(self.listener, notification, errno.EACCES)
            raise

    def consider(self, notification: Notification) -> None:
        task, fd = notification.task, notification.arguments[0] & 0xFFFFFFFF
        raw = copy_address(notification)
        way = find_way(task, fd, raw, self.doors, self.taken)
        flags = flags_of(task, fd)
        if not is_valid(self.listener, notification):
            return
        ours, problem = begin(way)
        dialling = Dialling(notification, ours, bool(flags & os.O_CLOEXEC))
        if problem == errno.EINPROGRESS and not flags & os.O_NONBLOCK:
            self.dialling[ours.fileno()] = dialling
            self.poll.register(ours, select.POLLOUT)
        else:
            self.hand_over(dialling, problem, blocking=not flags & os.O_NONBLOCK)

    def arrive(self, fd: int) -> None:
        """A caller that waits, and whose connection has come about or failed."""
        self.poll.unregister(fd)
        dialling = self.dialling.pop(fd)
        problem = dialling.ours.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        self.hand_over(dialling, problem, blocking=True)

    def hand_over(self, dialling: Dialling, problem: int, *, blocking: bool) -> None:
        notification, ours, close_on_exec = dialling
        with ours:
            if problem in (0, errno.EINPROGRESS):
                ours.setblocking(blocking)
                try:
                    replace_descriptor(self.listener, notification, ours.fileno(), close_on_exec=close_on_exec)
                    self.taken.append(name_of(ours))
                except OSError as error:
                    problem = error.errno or errno.EACCES
            answer(self.listener, notification, problem)


def copy_address(notification: Notification) -> bytes:
    _, place, length, *_ = notification.arguments
    length &= 0xFFFFFFFF
    if length > _ADDRESS_BYTES:
        raise Denied(errno.EINVAL)
    memory = os.open(f"/proc/{notification.task}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(memory, length, place)
    except (OSError, OverflowError) as error:
        raise Denied(errno.EFAULT) from error
    finally:
        os.close(memory)


def flags_of(task: int, fd: int) -> int:
    with open(f"/proc/{task}/fdinfo/{fd}", encoding="ascii") as file:
        return next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))
