"""Backend `uid`: a second user id, for a container in which namespaces are refused (Fargate).

B sees the container's files, so A's are not readable for it; A needs the right to become B: root, or the
capabilities that `privileges` keeps.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from sandbox_task.isolation.launch import Launch, Rooms, drop_to, limited_executor, own_python, worker_environment
from sandbox_task.isolation.wall import WallError

if TYPE_CHECKING:
    from pathlib import Path


def plan(rooms: Rooms, *, tools: Path | None, worker_uid: int) -> Launch:
    become = drop_to(worker_uid)
    argv = [*become, *limited_executor(_python_for(become), own_namespace=False)]
    env = worker_environment(home=str(rooms.home), tools=tools)
    return Launch("uid", tuple(argv), env, str(rooms.workspace), own_namespace=False)


def _python_for(become: list[str]) -> str:
    """An interpreter that B may execute: A's own may lie in a home directory that is closed to B."""
    for candidate in (str(own_python()), "/usr/local/bin/python3", "/usr/bin/python3"):
        probe = [*become, candidate, "-I", "-S", "-c", ""]
        if subprocess.run(probe, capture_output=True, check=False, cwd="/").returncode == 0:
            return candidate
    raise WallError("the supervisor may not become the worker's user id, or that user finds no Python")
