from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from sandbox_task.isolation.choose import put_up_wall
from sandbox_task.isolation.egress.gateway import Gateway
from tests.unit.sandbox.egress.origin import NAME, Origin, policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall

WORKER = 10002


@dataclass
class Inside:
    """What can be tried from behind the wall."""

    wall: Wall
    gateway: Gateway
    refusals: list[tuple[str, str]] = field(default_factory=list)

    def shell(self, command: str, timeout: float = 60) -> str:
        output = bytearray()
        self.wall.run(command, timeout=timeout, on_output=output.extend)
        return output.decode(errors="replace")

    def python(self, script: str, timeout: float = 60) -> str:
        self.wall.write_file("attempt.py", textwrap.dedent(script).encode())
        return self.shell("python3 attempt.py", timeout)


@pytest.fixture
def origin() -> Iterator[Origin]:
    with Origin() as origin:
        yield origin


@pytest.fixture(params=["bwrap", "uid"])
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "uid" and os.geteuid() != 0:
        pytest.skip("only root may become another user")
    return str(request.param)


@pytest.fixture
def inside(backend: str, rooms: Rooms, origin: Origin) -> Iterator[Inside]:
    refusals: list[tuple[str, str]] = []
    gateway = Gateway(on_refusal=lambda *pair: refusals.append(pair), resolve=lambda host, _port: _book(host))
    wall = put_up_wall(backend, rooms, tools=None, worker_uid=WORKER, gateway=gateway)  # type: ignore[arg-type]
    gateway.open(lambda: policy(origin))
    yield Inside(wall, gateway, refusals)
    wall.close()
    gateway.close()


def _book(host: str) -> list[str]:
    if host != NAME:
        raise OSError("unknown")
    return ["127.0.0.1"]
