"""A pseudo-terminal for a command that wants one, made by B itself: A has nothing but the pipes that it always has.

Given to the interpreter behind the wall as text, as the executor is (see there).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import subprocess
import termios
import time

from sandbox_task.isolation.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHUNK = 1 << 16
LET_GO_SECONDS = 0.05  # until it is looked again whether a command that has let go of its terminal has taken it again
LAST_BYTES = 1 << 20  # somebody that the command left behind may never stop talking
INTERRUPT, END = b"\x03", b"\x04"


def open_terminal(rows: int, columns: int) -> tuple[int, int]:
    """Our side, and the command's."""
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
    return leader, follower


def spawn_at(follower: int, message: dict[str, Any]) -> int:
    child = subprocess.Popen(
        message["argv"],
        cwd=message["cwd"],
        env=message["env"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509 - there are no threads here
    )
    child.returncode = 0  # waited for by `Started`, never by Popen
    return child.pid


def take_terminal() -> None:
    """In the command's process, once it leads a session: what is its input becomes the session's terminal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Attendant(Record):
    """A process that moves bytes between a terminal and A's pipes. It listens to `line`: any word is Ctrl-C."""

    pid: int
    line: int

    def interrupt(self) -> None:
        os.write(self.line, b"i")

    def finish(self) -> None:
        """The command has ended. Returns when what it said before has been handed on."""
        os.close(self.line)
        os.waitpid(self.pid, 0)


def attend(leader: int, output: int, source: int | None = None) -> Attendant:
    """Without a source of input, what is read from the terminal ends at once."""
    heard, line = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            close_all_but(leader, output, source, heard)
            Moving(leader, output, source, heard).go_on()
        finally:
            os._exit(0)
    os.close(heard)
    return Attendant(pid, line)


class Moving:
    def __init__(self, leader: int, output: int, source: int | None, line: int) -> None:
        self.leader, self.output, self.source, self.line = leader, output, source, line
        self.pending = END if source is None else b""
        os.set_blocking(leader, False)

    def go_on(self) -> None:
        """Without waiting for what can't be moved: a program that does not read its input may still talk."""
        while True:
            ready = self.wait()
            if self.line in ready and not self.obey():
                return
            if ready.get(self.leader, 0) & (select.POLLIN | select.POLLHUP) and not self.hand_on():
                time.sleep(LET_GO_SECONDS)
            if self.source in ready:
                self.hear()
            self.tell()

    def wait(self) -> dict[int, int]:
        poll = select.poll()
        poll.register(self.line, select.POLLIN)
        poll.register(self.leader, select.POLLIN | (select.POLLOUT if self.pending else 0))
        if self.source is not None and not self.pending:
            poll.register(self.source, select.POLLIN)
        return dict(poll.poll())

    def obey(self) -> bool:
        """False when there is nothing more to do."""
        if os.read(self.line, CHUNK):
            self.pending = INTERRUPT  # what was still to be read is lost, as with every terminal
            return True
        left = LAST_BYTES
        while left > 0 and (count := self.hand_on()):
            left -= count
        return False

    def hear(self) -> None:
        data = os.read(self.source or 0, CHUNK)
        self.pending += data or END
        if not data:
            self.source = None

    def tell(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self.pending:
                self.pending = self.pending[os.write(self.leader, self.pending) :]

    def hand_on(self) -> int:
        """How much there was; 0 also when nobody has the terminal open any more."""
        try:
            data = os.read(self.leader, CHUNK)
        except OSError:
            return 0
        os.write(self.output, data)
        return len(data)


def close_all_but(*kept: int | None) -> None:
    """The keeper's line above all: while a copy of it is open, nobody notices that the keeper is gone."""
    start = 3
    for fd in sorted(fd for fd in kept if fd is not None):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))
