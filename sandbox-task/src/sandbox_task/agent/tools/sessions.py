"""What lives on between the calls of one run: kept output, background processes, interpreters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from sandbox_task.agent.tools.background import Background
from sandbox_task.agent.tools.interpreters import Interpreters
from sandbox_task.agent.tools.kept import KeptOutputs

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.agent.ports import Sink
    from sandbox_task.isolation.wall import Wall


@dataclass(frozen=True)
class Sessions:
    outputs: KeptOutputs
    background: Background
    interpreters: Interpreters

    @classmethod
    def open(cls, wall: Wall, sink: Sink, private: Path) -> Self:
        """`private` is a directory that B can't read."""
        outputs = KeptOutputs(private)
        return cls(outputs, Background(wall, sink, outputs), Interpreters(wall))
