"""`up`, `down` and `status` of the AWS on your machine.

    up(UpOptions(port=8787), report)     # blocks until SIGINT or SIGTERM; raises LocalError
    with background(UpOptions(port=0)) as info: ...

Everything listens on 127.0.0.1. A fresh `up` starts with a fresh AWS.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sandpiper_local import lock
from sandpiper_local.aws import HOST, free_port
from sandpiper_local.build import check_tools
from sandpiper_local.errors import LocalError, PortTaken
from sandpiper_local.guardian import remove
from sandpiper_local.parts import Parts, stop_signals
from sandpiper_local.paths import StateDir, default_state_dir
from sandpiper_local.startup import Startup, check_environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sandpiper_local.startup import Report

DEFAULT_PORT = 8787
_DOWN_SECONDS = 40


type GitHub = Literal["real", "fake"]


@dataclass(frozen=True)
class UpOptions:
    port: int = DEFAULT_PORT  # 0 takes a free one
    state_dir: Path = field(default_factory=lambda: default_state_dir(os.environ))
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    github: GitHub = "real"


class _Stopped(BaseException):
    """Asked to stop. No Exception: nothing on the way may mistake it for a failure."""


def up(options: UpOptions, report: Report) -> None:
    """Run the stack in the foreground until a signal asks to stop.

    `report` gets `{"event": "progress", "message": …}` and, once, `{"event": "ready", …}` with
    what `local.json` says but for the credentials.
    """

    def stop() -> None:
        raise _Stopped

    with stop_signals(stop):
        try:
            _run(options, report)
        except _Stopped:
            report({"event": "stopped", "message": "everything is stopped"})


def _run(options: UpOptions, report: Report) -> None:
    state = StateDir(options.state_dir.absolute())
    port = options.port or free_port()
    with lock.hold(state, f"http://{HOST}:{port}") as lock_fd:
        _check_port(port)
        check_tools()
        check_environment(options.environment)
        state.clear()
        # short, because the names of Unix sockets may not be long, and open to pass through for other users' commands
        scratch = Path(tempfile.mkdtemp(prefix="sandpiper-"))
        scratch.chmod(0o711)
        leftovers = [scratch, state.info]
        try:
            with Parts(state, leftovers=leftovers, inherit_fd=lock_fd) as parts:
                Startup(
                    environment={**options.environment, **_github(options, parts, state, port, report)},
                    state=state,
                    port=port,
                    scratch=scratch,
                    parts=parts,
                    report=report,
                ).run()
                parts.wait_for_failure()
        finally:
            remove(leftovers)  # the guardian did, unless it was killed


def _github(options: UpOptions, parts: Parts, state: StateDir, port: int, report: Report) -> dict[str, str]:
    """The environment that a fake GitHub asks for; none if it is not wanted."""
    if options.github != "fake":
        return {}
    from sandpiper_local.github import start_github  # noqa: PLC0415 - most stacks start without it

    report({"event": "progress", "message": "starting the fake GitHub"})
    return start_github(parts, state, api_url=f"http://{HOST}:{port}")


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise PortTaken(port) from error


def status(state_dir: Path) -> dict[str, Any] | None:
    """What `local.json` says, if a stack is running there and ready."""
    state = StateDir(state_dir.absolute())
    if not lock.is_held(state) or not state.info.exists():
        return None
    info: dict[str, Any] = json.loads(state.info.read_text())
    return info


def down(state_dir: Path) -> bool:
    """Stop the stack and wait until its last process is gone. False if none was running."""
    state = StateDir(state_dir.absolute())
    if not lock.is_held(state):
        return False
    if holder := lock.read_holder(state):
        with contextlib.suppress(ProcessLookupError):
            os.kill(holder["pid"], signal.SIGTERM)
    deadline = time.monotonic() + _DOWN_SECONDS
    while lock.is_held(state):
        if time.monotonic() > deadline:
            raise LocalError(f"the stack in {state.root} did not stop within {_DOWN_SECONDS} s")
        time.sleep(0.1)
    return True


@contextlib.contextmanager
def background(options: UpOptions, report: Report | None = None) -> Iterator[dict[str, Any]]:
    """A stack in a process of its own for as long as the block runs; yields what `local.json` says.

    It also ends with the thread that entered the block, even if that is killed.
    """
    command = [sys.executable, "-m", "sandpiper_local", "up", "--json", "--parent", str(os.getpid())]
    command += ["--port", str(options.port), "--state-dir", str(options.state_dir), "--github", options.github]
    with subprocess.Popen(command, env=dict(options.environment), stdout=subprocess.PIPE, text=True) as process:
        try:
            _wait_for_ready(process, report)
            yield json.loads(StateDir(options.state_dir.absolute()).info.read_text())
        finally:
            process.terminate()
            process.wait()  # before leaving closes the pipe: it has a last line to say


def _wait_for_ready(process: subprocess.Popen[str], report: Report | None) -> None:
    for line in process.stdout or ():
        message: dict[str, Any] = json.loads(line)
        if report is not None:
            report(message)
        if message["event"] == "ready":
            return
        if message["event"] == "error":
            raise LocalError(message["message"])
    raise LocalError(f"the local stack ended with exit code {process.wait()}")
