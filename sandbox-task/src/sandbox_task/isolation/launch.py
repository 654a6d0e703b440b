"""What both backends have in common: the rooms of a run, B's environment, and how the executor is started."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_task.isolation import executor, keeper, kernel, landlock, processes, record, slim, terminal, worker_files
from sandbox_task.isolation.carrying import packed, unpacking
from sandbox_task.isolation.confinement import inside
from sandbox_task.isolation.wall import WallError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from sandbox_task.isolation.confinement.plan import Confinement
    from sandbox_task.isolation.egress.gateway import Passage


EXECUTOR = (slim, record, kernel, landlock, inside, processes, keeper, terminal, worker_files, executor)


@dataclass(frozen=True)
class Rooms:
    """`private` is A's alone; `workspace` and `home` are B's. B can't rename them: their parent is A's."""

    root: Path
    private: Path
    workspace: Path
    home: Path


@dataclass(frozen=True)
class Launch:
    """How one backend starts the executor, and what B sees once it runs."""

    backend: str
    argv: tuple[str, ...]
    modules: bytes  # what it reads first, of the line to A that is its descriptor 0
    env: dict[str, str]
    workspace: str
    own_namespace: bool
    take_over: Callable[[socket.socket], None] | None = None  # what comes ahead of the executor's first words
    end_worker: tuple[str, ...] = ()  # ends everything that has B's user id, at one moment


def open_rooms(root: Path, worker_uid: int) -> Rooms:
    """Safe to repeat: as root first, then as the supervisor that root has become."""
    rooms = Rooms(root, root / "private", root / "workspace", root / "home")
    root.mkdir(parents=True, exist_ok=True)
    for room, mode in ((rooms.private, 0o700), (rooms.workspace, 0o775), (rooms.home, 0o775)):
        if not room.exists():
            room.mkdir()
            room.chmod(mode)
    if os.geteuid() == 0:
        root.chmod(0o711)
        for room in (rooms.workspace, rooms.home):
            os.chown(room, worker_uid, worker_uid)
    return rooms


def worker_environment(*, home: str, temporary: str, tools: Path | None) -> dict[str, str]:
    """An allow-list: nothing of A's environment is handed on."""
    path = [str(tools / "bin")] if tools else []
    return {
        "PATH": ":".join([*path, "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": home,
        "USER": "worker",
        "LOGNAME": "worker",
        "SHELL": "/bin/sh",
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "CI": "1",
        "PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "ASAN_OPTIONS": "detect_leaks=0",  # it looks for leaks by ptrace, which nothing behind the wall may use
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }


def in_terminal(environment: dict[str, str]) -> dict[str, str]:
    """For a command that has a terminal: there is somebody to talk to."""
    return {**{name: value for name, value in environment.items() if name != "CI"}, "TERM": "xterm-256color"}


def drop_to(worker_uid: int) -> list[str]:
    """Become B for good. The bounding set needs a right that only root has; no_new_privs makes up for it."""
    everything = ["--bounding-set=-all"] if os.geteuid() == 0 else []
    return [
        program("setpriv"),
        f"--reuid={worker_uid}",
        f"--regid={worker_uid}",
        "--clear-groups",
        "--no-new-privs",
        "--inh-caps=-all",
        "--ambient-caps=-all",
        *everything,
        "--",
    ]


def confined_executor(
    python: Path, confinement: Confinement, passage: Passage, *, own_namespace: bool
) -> tuple[list[str], bytes]:
    """Its arguments, and the modules that it reads first. What the passage needs comes ahead of the confinement, which
    holds for what comes after it only."""
    modules = packed((*EXECUTOR, *passage.modules), compiled=python == own_python())
    source = [
        unpacking(modules),
        f"import {passage.modules[0].__name__} as passage" if passage.modules else "",
        f"ready = {passage.before}",
        f"from {inside.__name__} import confine",
        f"from {executor.__name__} import main",
        "ready and ready()",
        f"confine({confinement.as_data()!r})",
        "main()",
    ]
    argv = [str(python), "-I", "-S", "-c", "\n".join(source), "namespace" if own_namespace else "shared"]
    return argv, modules


def needed_places(tools: Path | None) -> set[Path]:
    """The executor's interpreter and the tools, at the paths they have outside, where their links lead."""
    own = own_python().parent.parent
    return {own, tools, *_link_targets(tools / "bin" / "python3")} if tools else {own}


def _link_targets(link: Path) -> set[Path]:
    """The prefixes that a virtual environment's interpreter leads to, link by link."""
    targets = set()
    while link.is_symlink():
        link = Path(os.path.normpath(link.parent / link.readlink()))
        targets |= {link.parent.parent, link.resolve().parent.parent}
    return {target for target in targets if target.is_dir()}


def own_python() -> Path:
    """The interpreter beneath the virtual environment that A may run in."""
    return Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")


def program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise WallError(f"{name} is not installed")
    return path
