"""One command behind the wall, from its start to its end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import threading
import time
from typing import TYPE_CHECKING

from sandbox_task.isolation.wall import Completed, Ending, OutputSink, WallError, WallLost
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.isolation.channel import Answer, Channel

_EXIT_CODES = range(-64, 256)  # the executor may say anything


class Running:
    """`follow` is called by one thread, everything else by any."""

    def __init__(
        self, channel: Channel, answer: Answer, output: int, on_output: OutputSink, take_down: Callable[[], None]
    ) -> None:
        self._channel, self._answer = channel, answer
        self._output, self._on_output = output, on_output
        self._take_down = take_down
        self._started = time.monotonic()
        self._was_ended = False
        self._done = threading.Event()
        self._completed: Completed | None = None
        self._failure: WallError | None = None

    def follow(self, *, timeout: float | None) -> Completed:
        """Hand on output until the command has ended or has been ended. Raises WallError if it could not start."""
        try:
            code, ending = self._until_the_end(timeout)
        except WallError as error:
            self._failure = error
            raise
        finally:
            os.close(self._output)
            self._channel.forget(self._answer)
            self._done.set()
        self._completed = Completed(code, ending, round((time.monotonic() - self._started) * 1000))
        return self._completed

    def follow_in_background(self, on_end: Callable[[], None]) -> None:
        def follow() -> None:
            try:
                self.follow(timeout=None)
            except WallError:
                pass  # told by `wait`
            finally:
                on_end()

        threading.Thread(target=follow, name="command", daemon=True).start()

    def wait(self, seconds: float) -> Completed | None:
        self._done.wait(seconds)
        if self._failure is not None:
            raise self._failure
        return self._completed

    def interrupt(self) -> None:
        self._channel.ask("interrupt", {"command": self._answer.number})

    def end(self) -> None:
        self.note_end()
        self._kill()

    def note_end(self) -> None:
        """Somebody is about to end it."""
        self._was_ended = True

    def _kill(self) -> None:
        try:
            self._channel.ask("kill", {"command": self._answer.number})
        except WallError:
            self._take_down()

    def _until_the_end(self, timeout: float | None) -> tuple[int | None, Ending]:
        os.set_blocking(self._output, False)
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        poll.register(self._answer.fd, select.POLLIN)
        while (left := self._left(timeout)) is None or left > 0:
            ready = {fd for fd, _ in poll.poll(left and left * 1000)}
            if self._output in ready and not self._drain(1 << 20):
                poll.unregister(self._output)
            if self._answer.fd in ready:
                self._drain_rest()
                return self._ending()
        self._kill()
        if not self._answer.arrives(limits.KILL_SECONDS):
            self._take_down()
        self._drain_rest()
        return None, "timeout"

    def _left(self, timeout: float | None) -> float | None:
        return None if timeout is None else self._started + timeout - time.monotonic()

    def _ending(self) -> tuple[int | None, Ending]:
        try:
            code = self._answer.wait(0).get("exit")
        except WallLost:
            code = None
        if self._was_ended:
            return None, "interrupt"
        if isinstance(code, int) and code in _EXIT_CODES:
            return code, "itself"
        with contextlib.suppress(WallError):  # who killed its keeper may have killed the executor: now it is known
            self._channel.ask("kill", {"command": self._answer.number})
        return None, "wall_lost"

    def _drain_rest(self) -> None:
        """What it said before it ended is in the pipe by now; somebody that it left behind may never stop talking."""
        self._drain(fcntl.fcntl(self._output, fcntl.F_GETPIPE_SZ))

    def _drain(self, at_most: int) -> bool:
        """Hand on what is there now; False at the end of the stream."""
        while at_most > 0:
            try:
                data = os.read(self._output, min(at_most, 1 << 16))
            except BlockingIOError:
                return True
            if not data:
                return False
            at_most -= len(data)
            self._on_output(data)
        return True
