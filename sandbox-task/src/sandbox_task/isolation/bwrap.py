"""Backend `bwrap`: namespaces by bubblewrap. A read-only system, the workspace, and no network but A's doors.

As root no user namespace is used: B then has a user id of its own, and places under /root can be bound.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_task.isolation.confinement import plan as confinement
from sandbox_task.isolation.egress.gateway import Passage
from sandbox_task.isolation.launch import (
    Launch,
    Rooms,
    confined_executor,
    drop_to,
    needed_places,
    own_python,
    program,
    worker_environment,
)
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox_task.isolation.egress.gateway import Gateway

WORKSPACE = "/workspace"
HOME = "/home/worker"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ssl",
    "ca-certificates",
    "alternatives",
    "localtime",
    "mime.types",
)


def plan(rooms: Rooms, *, tools: Path | None, worker_uid: int, gateway: Gateway | None) -> Launch:
    passage = gateway.into_namespace() if gateway else Passage()
    as_root = os.geteuid() == 0
    uid = worker_uid if as_root else os.geteuid()
    confined = confinement.in_own_mounts(workspace=WORKSPACE, home=HOME)
    executor, modules = confined_executor(own_python(), confined, passage, own_namespace=True)
    argv = [
        program("bwrap"),
        *("--die-with-parent", "--new-session"),
        *(_root_namespaces() if as_root else ("--unshare-all", "--cap-drop", "ALL")),
        *_system(),
        *_etc(rooms, uid),
        *_own_places(tools),
        *("--perms", "0755", "--dir", "/home"),
        *("--bind", str(rooms.home), HOME),
        *("--bind", str(rooms.workspace), WORKSPACE),
        *("--chdir", WORKSPACE, "--"),
        *(drop_to(uid) if as_root else ()),
        *executor,
    ]
    env = {**worker_environment(home=HOME, temporary=confined.temporary, tools=tools), **passage.env}
    return Launch("bwrap", tuple(argv), modules, env, WORKSPACE, own_namespace=True, take_over=passage.take_over)


def _root_namespaces() -> tuple[str, ...]:
    return ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup")


def _system() -> Iterable[str]:
    for place in _SYSTEM:
        if Path(place).is_symlink():
            yield from ("--symlink", str(Path(place).readlink()), place)
        else:
            yield from ("--ro-bind-try", place, place)
    yield from ("--proc", "/proc", "--dev", "/dev")
    for place in ("/tmp", "/dev/shm"):  # noqa: S108 - B's own
        yield from ("--perms", "1777", "--size", str(limits.WALL_TEMPORARY_BYTES), "--tmpfs", place)


def _etc(rooms: Rooms, uid: int) -> Iterable[str]:
    files = {
        "passwd": f"root:x:0:0:root:/:/bin/false\nworker:x:{uid}:{uid}:worker:{HOME}:/bin/sh\n",
        "group": f"root:x:0:\nworker:x:{uid}:\n",
        "hosts": "127.0.0.1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }
    own = rooms.root / "etc"
    own.mkdir(exist_ok=True)
    yield from ("--perms", "0755", "--dir", "/etc")
    for name, content in files.items():
        (own / name).write_text(content, encoding="utf-8")
        (own / name).chmod(0o644)
        yield from ("--ro-bind", str(own / name), f"/etc/{name}")
    for name in (*_ETC, *(place.name for place in Path("/etc").glob("java-*"))):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _own_places(tools: Path | None) -> Iterable[str]:
    for place in sorted(needed_places(tools)):
        if not place.is_relative_to("/usr"):
            yield from (part for parent in _parents(place) for part in ("--perms", "0755", "--dir", str(parent)))
            yield from ("--ro-bind", str(place), str(place))


def _parents(place: Path) -> list[Path]:
    return [parent for parent in reversed(place.parents) if parent != Path("/")]
