"""Backend `uid`: a second user id, for a container in which namespaces are refused (Fargate).

B shares the container's network, of which a filter and a broker leave it the doors of A and its own loopback. B sees
the container's files, so A's are not readable for it; A needs the right to become B: root, or the
capabilities that `privileges` keeps.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_task.isolation.confinement import plan as confinement
from sandbox_task.isolation.egress.gateway import guard
from sandbox_task.isolation.launch import (
    Launch,
    Rooms,
    confined_executor,
    drop_to,
    needed_places,
    own_python,
    worker_environment,
)
from sandbox_task.isolation.wall import WallError

if TYPE_CHECKING:
    from sandbox_task.isolation.egress.gateway import Gateway


def plan(rooms: Rooms, *, tools: Path | None, worker_uid: int, gateway: Gateway | None) -> Launch:
    passage = gateway.on_loopback() if gateway else guard([], {})
    become = drop_to(worker_uid)
    confined = confinement.in_shared_files(workspace=rooms.workspace, home=rooms.home, needed=needed_places(tools))
    executor, modules = confined_executor(_python_for_others(), confined, passage, own_namespace=False)
    environment = worker_environment(home=str(rooms.home), temporary=confined.temporary, tools=tools)
    env = {**environment, **passage.env}
    end_worker = (*become, "/bin/sh", "-c", "kill -9 -1")
    argv = (*become, *executor)
    return Launch("uid", argv, modules, env, str(rooms.workspace), own_namespace=False, end_worker=end_worker)


def _python_for_others() -> Path:
    """An interpreter that B may execute: A's own may lie in a home directory that is closed to B."""
    for candidate in (own_python(), Path("/usr/local/bin/python3"), Path("/usr/bin/python3")):
        if candidate.exists() and all(_is_open(place) for place in (candidate, candidate.resolve())):
            return candidate
    raise WallError("the worker's user finds no Python")


def _is_open(program: Path) -> bool:
    return all(place.stat().st_mode & stat.S_IXOTH for place in (program, *program.parents))
