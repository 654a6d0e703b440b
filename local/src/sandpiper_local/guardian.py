"""The process under which all others run: `python -m sandpiper_local.guardian SOCKET_FD PATH…`.

`up` asks it over a socket to start processes and hears of their end. The socket is also its lifeline: when `up` is
gone, by Ctrl-C or by SIGKILL, the guardian ends everything below it, removes the paths and goes too.
Standard library only, one thread, so that there is little in it that could fail.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from sandpiper_local.processes import become_subreaper, child_signals, die_with_parent, end_descendants, reap

GRACE_SECONDS = 5.0


class Guardian:
    def __init__(self, lifeline: socket.socket) -> None:
        self._lifeline = lifeline
        self._requests = lifeline.makefile("rb")
        self._names: dict[int, str] = {}

    def watch(self) -> None:
        """Serve until the lifeline breaks. `up` waits for each answer, so no request hides in the read buffer."""
        with child_signals() as child_ended, selectors.DefaultSelector() as selector:
            for source in (self._lifeline, child_ended):
                selector.register(source, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if child_ended in ready:
                    child_ended.recv(4096)
                    self._tell_ended()
                if self._lifeline in ready:
                    request = self._requests.readline()
                    if not request:
                        return
                    self._start(json.loads(request))

    def _start(self, request: dict[str, Any]) -> None:
        with Path(request["log"]).open("ab") as log:
            try:
                process = subprocess.Popen(
                    request["command"],
                    env=request["environment"],
                    cwd=request["directory"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    preexec_fn=die_with_parent(os.getpid(), signal.SIGKILL),  # noqa: PLW1509 - single-threaded
                )
            except OSError as error:
                self._tell({"refused": request["name"], "reason": str(error)})
                return
        self._names[process.pid] = request["name"]
        self._tell({"started": request["name"], "pid": process.pid})

    def _tell_ended(self) -> None:
        for pid, code in reap().items():
            if name := self._names.pop(pid, None):
                self._tell({"ended": name, "exit_code": code})

    def _tell(self, message: dict[str, Any]) -> None:
        self._lifeline.sendall(json.dumps(message).encode() + b"\n")


def remove(leftovers: list[Path]) -> None:
    for path in leftovers:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def main(socket_fd: int, leftovers: list[Path]) -> None:
    become_subreaper()
    # the terminal's Ctrl-C is for `up`, which then cuts the lifeline
    for signum in (signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        Guardian(socket.socket(fileno=socket_fd)).watch()
    except (BrokenPipeError, ConnectionResetError):
        pass  # `up` died while it was being told something: the same as a broken lifeline
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_descendants(GRACE_SECONDS)
        remove(leftovers)


if __name__ == "__main__":
    main(int(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
