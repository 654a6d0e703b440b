"""The process that tasks are born of: `python -m sandpiper_local.ecs_agent.nursery SOCKET_FD PRELOADED…`.

It imports what every task imports, once, and forks for each task. The import of the model's SDK alone takes a second,
which a container on AWS spends while its image is being pulled. What runs in a task is what `python -m` runs.
Single-threaded, and it holds no credentials: a task gets its own, and nothing is there to inherit.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import selectors
import socket
import sys
import tempfile
import threading
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from sandpiper_local.container import contain
from sandpiper_local.processes import child_signals, reap, show_as

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Job:
    module: str
    environment: Mapping[str, str]
    directory: str
    log: str
    grace_seconds: float
    shown: Mapping[str, str]  # what `ps` and /proc tell of the environment: nothing secret


class Nursery:
    def __init__(self, agent: socket.socket) -> None:
        self._agent = agent
        self._requests = agent.makefile("rb")

    def next_task(self) -> Job | None:
        """Returns in every new task's own process; None when the agent is gone."""
        me = os.getpid()
        with child_signals() as child_ended, selectors.DefaultSelector() as selector:
            for source in (self._agent, child_ended):
                selector.register(source, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if child_ended in ready:
                    child_ended.recv(4096)
                    self._tell_ended()
                if self._agent in ready:
                    request = self._requests.readline()
                    if not request:
                        return None
                    if (pid := os.fork()) == 0:
                        break
                    self._tell({"started": pid})
        self._requests.close()
        self._agent.close()
        job = Job(**json.loads(request))
        _enter(job)
        contain(parent=me, grace_seconds=job.grace_seconds)
        return job

    def _tell_ended(self) -> None:
        for pid, code in reap().items():
            self._tell({"ended": pid, "exit_code": code})

    def _tell(self, message: dict[str, Any]) -> None:
        self._agent.sendall(json.dumps(message).encode() + b"\n")


def _enter(job: Job) -> None:
    log = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.chdir(job.directory)
    os.environ.clear()
    os.environ.update(job.environment)
    tempfile.tempdir = None  # who asked during the imports was told of the nursery's
    show_as([sys.executable, "-m", job.module], job.shown)


def main(socket_fd: int, preloaded: Sequence[str]) -> None:
    for name in preloaded:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # the pages stay shared
    job = Nursery(socket.socket(fileno=socket_fd)).next_task()
    if job is not None:
        sys.argv = [job.module]
        sys.modules.pop(f"{job.module}.__main__", None)  # it runs under another name
        _leave(_run(job.module))


def _run(module: str) -> int:
    """What `python -m` does, and the code that it would exit with."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        sys.stderr.write(f"{ended.code}\n")
        return 1
    except BaseException:  # noqa: BLE001 - whatever it is, it is said, and the task has failed
        traceback.print_exc()
        return 1
    return 0


def _leave(code: int) -> NoReturn:
    """Like any forked child, without clearing all that was imported: that would take as long as a third of a run."""
    threading._shutdown()  # type: ignore[attr-defined] # noqa: SLF001 - waits for its threads, as every exit does
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
