"""The agent's end of the nursery: asks it for processes and hears of their end."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sandpiper_local.aws import SYSTEM_PATH
from sandpiper_local.ecs_agent.task import CannotStart
from sandpiper_local.processes import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandpiper_local.ecs_agent.nursery import Job

LOST = 128 + signal.SIGKILL
_ENVIRONMENT = {"PATH": SYSTEM_PATH, "LANG": "C.UTF-8", "ROOM": "for what the tasks show of theirs".ljust(256, ".")}


class Births:
    """A nursery that ends by itself takes its tasks along, and is replaced for the next."""

    def __init__(self, preloaded: Sequence[str]) -> None:
        self._preloaded = preloaded
        self._exit_codes: dict[int, int] = {}
        self._alive: set[int] = set()
        self._open()

    def _open(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._answers = self._socket.makefile("rb")
        with theirs:
            self._nursery = subprocess.Popen(
                [sys.executable, "-m", "sandpiper_local.ecs_agent.nursery", str(theirs.fileno()), *self._preloaded],
                pass_fds=(theirs.fileno(),),
                env=_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                preexec_fn=die_with_parent(os.getpid(), signal.SIGKILL),  # noqa: PLW1509 - single-threaded
            )

    def fileno(self) -> int:
        return self._socket.fileno()

    def start(self, job: Job) -> int:
        """The pid of a new task. Raises CannotStart."""
        for _ in ("the nursery that is there", "a new one"):
            try:
                return self._ask_for(job)
            except (OSError, EOFError):
                self._replace()
        raise CannotStart("CannotStartContainerError: the process that tasks are forked from does not start")

    def _ask_for(self, job: Job) -> int:
        self._socket.sendall(json.dumps(asdict(job)).encode() + b"\n")
        while "started" not in (message := self._take_message()):
            continue
        pid = int(message["started"])
        self._alive.add(pid)
        return pid

    def exit_code(self, pid: int) -> int | None:
        try:
            while select.select([self._socket], [], [], 0)[0]:
                self._take_message()
        except (OSError, EOFError):
            self._replace()
        return self._exit_codes.pop(pid, None)

    def _take_message(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            raise EOFError
        message: dict[str, Any] = json.loads(line)
        if pid := message.get("ended"):
            self._alive.discard(pid)
            self._exit_codes[pid] = message["exit_code"]
        return message

    def _replace(self) -> None:
        self.close()
        self._exit_codes |= dict.fromkeys(self._alive, LOST)  # the kernel has told them to end
        self._alive.clear()
        self._open()

    def close(self) -> None:
        self._answers.close()
        self._socket.close()
        with suppress(ProcessLookupError):
            self._nursery.kill()
        self._nursery.wait()
