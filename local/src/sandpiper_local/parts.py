"""The running parts of a stack, as `up` sees them: started through the guardian, watched, ended together."""

from __future__ import annotations

import contextlib
import json
import select
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Self

from sandpiper_local.errors import LocalError, PartFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from sandpiper_local.paths import StateDir

_END_SECONDS = 30
_POLL_SECONDS = 0.05


class Parts:
    """Use as a context manager: leaving it ends every process that was started."""

    def __init__(self, state: StateDir, *, leftovers: Sequence[Path], inherit_fd: int) -> None:
        """The guardian removes `leftovers` in the end. Until then it holds `inherit_fd`, the lock of the directory."""
        ours, theirs = socket.socketpair()
        self._state = state
        self._socket = ours
        self._answers = ours.makefile("rb")
        self._running: set[str] = set()
        self._exit_codes: dict[str, int] = {}
        self.pids: dict[str, int] = {}
        with theirs, state.log("guardian").open("ab") as log:
            self._guardian = subprocess.Popen(
                [sys.executable, "-m", "sandpiper_local.guardian", str(theirs.fileno()), *map(str, leftovers)],
                pass_fds=(theirs.fileno(), inherit_fd),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        self.pids["guardian"] = self._guardian.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._answers.close()
        self._socket.close()
        self._guardian.wait(_END_SECONDS)

    def start(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        request = {
            "name": name,
            "command": [str(word) for word in command],
            "environment": dict(environment),
            "directory": str(self._state.root),
            "log": str(self._state.log(name)),
        }
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        while name not in self._running and name not in self._exit_codes:
            self._take_message()

    def run(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str]) -> int:
        """Start something that ends by itself, and wait for its exit code."""
        self.start(name, command, environment)
        while name in self._running:
            self._take_message()
        del self.pids[name]
        return self._exit_codes.pop(name)

    def wait_until(self, ready: Callable[[], bool], *, part: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise LocalError(f"{part} was not ready within {seconds:.0f} s; its log is {self._state.log(part)}")
            time.sleep(_POLL_SECONDS)

    def check(self) -> None:
        """Raises PartFailed if a part has ended."""
        while select.select([self._socket], [], [], 0)[0]:
            self._take_message()
        for name, code in self._exit_codes.items():
            raise PartFailed(name, code, self._state.log(name))

    def wait_for_failure(self) -> None:
        while True:
            self.check()
            self._take_message()

    def _take_message(self) -> None:
        line = self._answers.readline()
        if not line:
            raise PartFailed("guardian", self._guardian.wait(_END_SECONDS), self._state.log("guardian"))
        self._note(json.loads(line))

    def _note(self, message: dict[str, Any]) -> None:
        if name := message.get("started"):
            self._running.add(name)
            self.pids[name] = message["pid"]
        elif name := message.get("ended"):
            self._running.discard(name)
            self._exit_codes[name] = message["exit_code"]
        else:
            raise LocalError(f"{message['refused']} could not be started: {message['reason']}")


@contextlib.contextmanager
def stop_signals(stop: Callable[[], None]) -> Iterator[None]:
    """While inside, the first SIGINT, SIGTERM or SIGHUP calls `stop`; further ones must not disturb the tidying up."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop_once(*_: object) -> None:
        for signum in signals:
            signal.signal(signum, signal.SIG_IGN)
        stop()

    before = {signum: signal.signal(signum, stop_once) for signum in signals}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
