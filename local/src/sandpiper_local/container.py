"""Runs one task as ECS runs a container: `python -m sandpiper_local.container GRACE_SECONDS -- COMMAND…`.

When the command ends, everything that it started ends too, daemons included. SIGTERM is passed on and followed by
SIGKILL after the grace period (ECS's stopTimeout); SIGHUP, which says that the agent is gone, means SIGKILL at once.
Exits with the command's code.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from sandpiper_local.processes import become_subreaper, descendants, die_with_parent, end_descendants, reap, signal_all

if TYPE_CHECKING:
    from collections.abc import Callable

_FOLLOWED_SIGNALS = {signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD}


def run(command: list[str], *, grace_seconds: float) -> int:
    become_subreaper()
    signal.pthread_sigmask(signal.SIG_BLOCK, _FOLLOWED_SIGNALS)
    main = subprocess.Popen(command, preexec_fn=_before_exec(), start_new_session=True)  # noqa: PLW1509 - one thread
    code = _wait(main.pid, grace_seconds)
    end_descendants(0)
    return code


def _before_exec() -> Callable[[], None]:
    tie = die_with_parent(os.getpid(), signal.SIGKILL)

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FOLLOWED_SIGNALS)
        tie()

    return prepare


def _wait(main: int, grace_seconds: float) -> int:
    kill_at: float | None = None
    while True:
        patience = 60.0 if kill_at is None else max(0.0, kill_at - time.monotonic())
        received = signal.sigtimedwait(_FOLLOWED_SIGNALS, patience)
        ended = reap()
        if main in ended:
            return ended[main]
        signum = received.si_signo if received is not None else None
        if signum == signal.SIGHUP or (kill_at is not None and time.monotonic() >= kill_at):
            signal_all(descendants(os.getpid()), signal.SIGKILL)
        elif signum == signal.SIGTERM and kill_at is None:
            kill_at = time.monotonic() + grace_seconds
            signal_all([main], signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(run(sys.argv[3:], grace_seconds=float(sys.argv[1])))
