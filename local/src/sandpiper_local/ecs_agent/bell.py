"""What has the agent look: ECS was asked to run or stop a task, a task has ended, or the agent is to stop itself.

ministack rings after RunTask and StopTask (see `ministack_launcher`), so a task starts at once, and nobody asks ECS
seven times a second whether there is one.
"""

from __future__ import annotations

import contextlib
import select
import signal
import socket
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path

NAME = "ecs-bell"


class Bell:
    def __init__(self, path: Path) -> None:
        self._bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._bell.bind(str(path))
        path.chmod(0o600)
        self._signalled, self._signals = socket.socketpair()
        for end in (self._bell, self._signalled, self._signals):
            end.settimeout(0)
        signal.set_wakeup_fd(self._signals.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(-1)
        for end in (self._bell, self._signalled, self._signals):
            end.close()

    def wait(self, others: list[int], seconds: float) -> None:
        """Until it rings, a signal comes, there is something to read from one of the others, or time is up."""
        select.select([self._bell.fileno(), self._signalled.fileno(), *others], [], [], seconds)
        for end in (self._bell, self._signalled):
            with contextlib.suppress(BlockingIOError):
                while end.recv(64):
                    pass
