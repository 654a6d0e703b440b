"""What can go wrong between `up` and `down`, in words, with the exit code that a script sees.

LocalError            1
├── BuildFailed       1
├── DeployFailed      1   the template holds something that the embedded AWS can't serve
├── PartFailed        1   a part ended by itself; names its log
├── BadSetting        2   a variable of the environment has a value that means nothing
├── ToolMissing       2
├── AlreadyRunning    3
└── PortTaken         4
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class LocalError(Exception):
    """Base of all failures with a message meant for the person at the terminal."""

    exit_code = 1


class BuildFailed(LocalError):
    def __init__(self, log: Path) -> None:
        super().__init__(f"`sam build` failed; see {log}")


class DeployFailed(LocalError):
    pass


class PartFailed(LocalError):
    def __init__(self, part: str, exit_code: int, log: Path) -> None:
        super().__init__(f"{part} ended with exit code {exit_code}; its log is {log}")


class BadSetting(LocalError):
    exit_code = 2


class ToolMissing(LocalError):
    exit_code = 2


class AlreadyRunning(LocalError):
    exit_code = 3

    def __init__(self, pid: int, api_url: str) -> None:
        super().__init__(f"Sandpiper is already running here: pid {pid}, {api_url} (stop it with `sandpiper down`)")
        self.pid = pid
        self.api_url = api_url


class PortTaken(LocalError):
    exit_code = 4

    def __init__(self, port: int) -> None:
        super().__init__(f"port {port} is taken by another program; choose another one with --port, or --port 0")
        self.port = port
