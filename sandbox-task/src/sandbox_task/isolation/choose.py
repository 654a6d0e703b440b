"""Which wall can be put up here: the one that is asked for, or the best one that works."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sandbox_task.isolation import bwrap, uid
from sandbox_task.isolation.bounds.bounded_wall import BoundedWall
from sandbox_task.isolation.bounds.disk import Disk
from sandbox_task.isolation.bounds.memory import Memory
from sandbox_task.isolation.executor_wall import ExecutorWall
from sandbox_task.isolation.launch import Launch, Rooms
from sandbox_task.isolation.wall import Wall, WallError
from sandpiper import limits
from sandpiper.errors import RunError

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.isolation.egress.gateway import Gateway
    from sandbox_task.settings import Backend

_Plan = Callable[..., Launch]
_BACKENDS: dict[Backend, _Plan] = {"bwrap": bwrap.plan, "uid": uid.plan}


def put_up_wall(
    forced: Backend | None, rooms: Rooms, *, tools: Path | None, worker_uid: int, gateway: Gateway | None = None
) -> Wall:
    """Without a gateway nothing but itself is reachable from behind the wall."""
    reasons = []
    for name in [forced] if forced else _BACKENDS:
        try:
            launch = _BACKENDS[name](rooms, tools=tools, worker_uid=worker_uid, gateway=gateway)
            wall = _proven(ExecutorWall(launch))
        except WallError as error:
            reasons.append(f"{name}: {error}")
        else:
            return BoundedWall(wall, _disk(rooms), Memory(reserve=limits.WALL_MEMORY_RESERVE_BYTES))
    raise RunError(
        "internal_error",
        "Commands can't be isolated here, so nothing was run. Install bubblewrap and util-linux, or start the sandbox "
        f"as root in a container of its own. ({'; '.join(reasons)})",
    )


def _disk(rooms: Rooms) -> Disk:
    places = (rooms.workspace, rooms.home)
    return Disk(places, quota=limits.WALL_DISK_BYTES, reserve=limits.WALL_DISK_RESERVE_BYTES)


def _proven(wall: Wall) -> Wall:
    """One that lets a command run in the workspace. Raises WallError."""
    try:
        done = wall.run("true", timeout=limits.KILL_SECONDS, on_output=lambda _data: None)
    except WallError:
        wall.close()
        raise
    if done.succeeded:
        return wall
    wall.close()
    raise WallError(f"a command can't run ({done.ended_by}, exit code {done.exit_code})")
