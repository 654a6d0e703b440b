"""Root only for a moment: the container starts as root, makes the rooms, and becomes the supervisor's user.

What is kept is the right to start and to end processes of the worker's user id, and nothing else of root's.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_task.isolation.launch import open_rooms

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_KEPT = "-all,+setuid,+setgid,+kill"
_PR_SET_DUMPABLE = 4


def become_supervisor(environ: MutableMapping[str, str]) -> None:
    """Replaces this process by one of SUPERVISOR_UID, if that is set and root starts it; otherwise does nothing."""
    supervisor = environ.get("SUPERVISOR_UID")
    if not supervisor or os.geteuid() != 0:
        return
    worker = int(environ.get("WORKER_UID", "10002"))
    root = Path(environ.get("SANDBOX_WORK_DIR") or tempfile.mkdtemp(prefix="sandpiper-"))
    rooms = open_rooms(root, worker)
    for place in (rooms.root, rooms.private):
        os.chown(place, int(supervisor), int(supervisor))
    environ["SANDBOX_WORK_DIR"] = str(root)
    environ["HOME"] = str(rooms.private)
    setpriv = shutil.which("setpriv") or "/usr/bin/setpriv"
    identity = (f"--reuid={supervisor}", f"--regid={supervisor}", f"--groups={worker}")
    rights = (f"--inh-caps={_KEPT}", f"--ambient-caps={_KEPT}", f"--bounding-set={_KEPT}", "--no-new-privs")
    command = [setpriv, *identity, *rights, "--", sys.executable, "-m", "sandbox_task"]
    os.execve(setpriv, command, dict(environ))  # noqa: S606 - no shell is meant


def guard_own_memory() -> None:
    """Nobody reads this process's memory or environment, whatever user he is."""
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
