"""`sandpiper` as a person at a terminal, or a script, runs it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.e2e.support import Person

SANDPIPER = Path(sys.executable).with_name("sandpiper")
SECONDS = 100


def bare_environment(**more: str) -> dict[str, str]:
    """Nothing of the machine's own Sandpiper, model or terminal is in it."""
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8", **more}


@dataclass(frozen=True)
class CommandLine:
    person: Person

    @property
    def environment(self) -> dict[str, str]:
        stack = self.person.stack
        return bare_environment(SANDPIPER_ENDPOINT=stack.api_url, SANDPIPER_TOKEN=stack.token(self.person.name))

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return call(*words, environment=self.environment)

    def started(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(SANDPIPER), *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def in_a_terminal(self, *words: str) -> tuple[int, str]:
        """Exit code and all that the terminal was sent."""
        ours, theirs = pty.openpty()
        environment = self.environment | {"TERM": "xterm-256color", "COLUMNS": "200"}
        with subprocess.Popen([str(SANDPIPER), *words], env=environment, stdin=theirs, stdout=theirs) as process:
            os.close(theirs)
            shown = b"".join(iter(lambda: _read(ours), b""))
        os.close(ours)
        return process.returncode, shown.decode()


def call(*words: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [str(SANDPIPER), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end is closed: that is how a terminal says so
        return b""
