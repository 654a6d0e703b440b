"""Processes that live on between calls: known, listed, and ended with all that they have started."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox_task.agent.tools.outcome import ToolError, ending_in_words
from sandpiper import limits

if TYPE_CHECKING:
    from sandbox_task.agent.ports import Sink
    from sandbox_task.agent.tools.kept import KeptOutput, KeptOutputs
    from sandbox_task.isolation.wall import Process, Wall

_SHOWN_COMMAND_CHARS = 200


@dataclass(frozen=True)
class BackgroundProcess:
    command: str
    process: Process
    output: KeptOutput
    since: float = field(default_factory=time.monotonic)

    @property
    def is_running(self) -> bool:
        return self.process.wait(0) is None

    @property
    def status(self) -> str:
        completed = self.process.wait(0)
        if completed is None:
            return f"running for {time.monotonic() - self.since:.0f} s"
        return f"{ending_in_words(completed)} after {completed.duration_ms / 1000:.0f} s"


class Background:
    def __init__(self, wall: Wall, sink: Sink, outputs: KeptOutputs) -> None:
        self._wall, self._sink, self._outputs = wall, sink, outputs
        self._known: dict[str, BackgroundProcess] = {}

    def start(self, command: str, *, cwd: str, call_id: str) -> BackgroundProcess:
        """Returns after a moment, so that one that fails at once is seen to. Raises WallError."""
        if sum(process.is_running for process in self._known.values()) >= limits.MAX_BACKGROUND:
            raise ToolError(f"{limits.MAX_BACKGROUND} background processes are running already: stop one first.")
        record_of = ExitStack()
        record = record_of.enter_context(self._outputs.record(self._sink, call_id))
        try:
            process = self._wall.start(command, cwd=cwd, on_output=record.feed, on_end=record_of.close)
        except BaseException:
            record_of.close()
            raise
        process.wait(limits.BACKGROUND_FIRST_SECONDS)
        known = BackgroundProcess(command, process, record.kept)
        self._known[record.kept.name] = known
        return known

    def find(self, name: str) -> BackgroundProcess | None:
        return self._known.get(name)

    def listing(self) -> str:
        return "\n".join(
            f"{name}: {process.status}: {process.command[:_SHOWN_COMMAND_CHARS]}"
            for name, process in self._known.items()
        )
