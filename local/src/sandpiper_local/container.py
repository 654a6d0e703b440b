"""Runs one task as ECS runs a container.

When its main process ends, everything that it started ends too, daemons included. SIGTERM is passed on and followed by
SIGKILL after the grace period (ECS's stopTimeout); SIGHUP, which says that the agent is gone, means SIGKILL at once.
"""

from __future__ import annotations

import os
import signal
import time

from sandpiper_local.processes import (
    become_subreaper,
    descendants,
    end_descendants,
    end_with_parent,
    reap,
    signal_all,
)

_FOLLOWED_SIGNALS = {signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD}


def contain(*, parent: int, grace_seconds: float) -> None:
    """Returns in a new process, the main one of the container. The calling process exits with its code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _FOLLOWED_SIGNALS)
    end_with_parent(parent, signal.SIGHUP)
    become_subreaper()
    container = os.getpid()
    main = os.fork()
    if main == 0:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FOLLOWED_SIGNALS)
        end_with_parent(container, signal.SIGKILL)
        return
    code = _wait(main, grace_seconds)
    end_descendants(0)
    os._exit(code)


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
