"""No wall at all: a plain subprocess. An attack that fails even here proves nothing about the wall."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from sandbox_task.isolation.wall import Completed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sandbox_task.isolation.wall import OutputSink


class NoWall:
    """`uid` None: as the supervisor itself; otherwise as the worker, held by nothing but its user id."""

    backend = "none"

    def __init__(self, workspace: Path, uid: int | None) -> None:
        self.workspace = str(workspace)
        self._uid = uid

    def run(self, command: str, *, timeout: float, on_output: OutputSink) -> Completed:
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=self.workspace,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
            close_fds=False,
            user=self._uid,
            group=self._uid,
            extra_groups=None if self._uid is None else [],
        )
        on_output(done.stdout)
        return Completed(done.returncode, "itself", 0)

    def _environment(self) -> Mapping[str, str]:
        return {**os.environ, "PATH": "/usr/local/bin:/usr/bin:/bin"}
