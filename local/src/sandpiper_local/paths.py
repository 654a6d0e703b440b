"""Where things are: the checkout, its tools, and the state of one running stack."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

REPOSITORY = Path(__file__).resolve().parents[3]
TOOLS = REPOSITORY / ".tools"
MINISTACK_PYTHON = TOOLS / "ministack" / "bin" / "python"
SAM = TOOLS / "sam" / "bin" / "sam"
TOOLBOX = TOOLS / "toolbox"
BUILD = REPOSITORY / ".sandpiper"
LAYERS = BUILD / "layers"


def default_state_dir(environment: Mapping[str, str]) -> Path:
    if chosen := environment.get("SANDPIPER_STATE_DIR"):
        return Path(chosen).absolute()
    if base := environment.get("XDG_STATE_HOME"):
        return Path(base) / "sandpiper"
    return Path.home() / ".local" / "state" / "sandpiper"


@dataclass(frozen=True)
class StateDir:
    """The files of one stack. Only the JWT secret outlives a restart: everything else is disposable."""

    root: Path

    @property
    def info(self) -> Path:
        return self.root / "local.json"

    @property
    def lock(self) -> Path:
        return self.root / "up.lock"

    @property
    def jwt_secret(self) -> Path:
        return self.root / "jwt_secret"

    @property
    def tasks(self) -> Path:
        return self.root / "tasks"

    @property
    def github(self) -> Path:
        return self.root / "github"

    def log(self, part: str) -> Path:
        return self.root / "logs" / f"{part}.log"

    def create(self) -> None:
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)

    def clear(self) -> None:
        """Forget the stack that ran here before."""
        self.info.unlink(missing_ok=True)
        for directory in (self.root / "logs", self.tasks, self.github):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(mode=0o700)
