"""Clones of the test server's repositories, and commands behind the wall in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox_task.workspace.repository import Repository
from sandpiper.models.spec import RunSpec
from tests.unit.sandbox.git_server import TOKEN

if TYPE_CHECKING:
    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall

AUTHOR = ("Sandpiper", "sandpiper@example.com")


def spec(url: str | None, **more: Any) -> RunSpec:
    return RunSpec(**{"task": "t", "repo": "o/r" if url else None, "repo_url": url, **more})


def cloned(rooms: Rooms, wall: Wall, spec: RunSpec, *, token: str | None = TOKEN, at: str | None = None) -> Repository:
    repository = Repository.clone(spec, rooms, token=token, at=at)
    repository.deliver(wall)
    return repository


def do(wall: Wall, command: str) -> str:
    output = bytearray()
    completed = wall.run(command, timeout=60, on_output=output.extend)
    assert completed.succeeded, output.decode(errors="replace")
    return output.decode(errors="surrogateescape")
