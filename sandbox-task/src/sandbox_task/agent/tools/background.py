"""Processes that live on between calls: known, listed, and ended with all that they have started."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox_task.agent.tools.feeding import Feed
from sandbox_task.agent.tools.outcome import ToolError, ending_in_words
from sandbox_task.agent.tools.plain import PlainText
from sandpiper import limits

if TYPE_CHECKING:
    from sandbox_task.agent.ports import Sink
    from sandbox_task.agent.tools.kept import KeptOutput, KeptOutputs
    from sandbox_task.isolation.wall import OutputSink, Process, Wall

_SHOWN_COMMAND_CHARS = 200


@dataclass(frozen=True)
class BackgroundProcess:
    command: str
    process: Process
    output: KeptOutput
    feed: Feed | None
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

    def start(self, command: str, *, cwd: str, call_id: str, terminal: bool = False) -> BackgroundProcess:
        """Returns after a moment, so that one that fails at once is seen to. Raises WallError."""
        if sum(process.is_running for process in self._known.values()) >= limits.MAX_BACKGROUND:
            raise ToolError(f"{limits.MAX_BACKGROUND} background processes are running already: stop one first.")
        at_end = ExitStack()
        feed = Feed() if terminal else None
        try:
            record = at_end.enter_context(self._outputs.record(self._sink, call_id))
            process = self._launch(command, cwd, record.feed, feed, at_end)
        except BaseException:
            at_end.close()
            raise
        process.wait(limits.BACKGROUND_FIRST_SECONDS)
        known = BackgroundProcess(command, process, record.kept, feed)
        self._known[record.kept.name] = known
        return known

    def _launch(self, command: str, cwd: str, on_output: OutputSink, feed: Feed | None, at_end: ExitStack) -> Process:
        if feed is None:
            return self._wall.start(command, cwd=cwd, on_output=on_output, on_end=at_end.close)
        plain = PlainText(on_output)
        at_end.callback(plain.close)
        at_end.callback(feed.close)
        with feed.taken() as stdin:
            return self._wall.start(
                command, cwd=cwd, on_output=plain.feed, on_end=at_end.close, stdin=stdin, terminal=True
            )

    def find(self, name: str) -> BackgroundProcess | None:
        return self._known.get(name)

    def get(self, name: str) -> BackgroundProcess:
        if name not in self._known:
            raise ToolError(f"There is no background process {name!r}. There are: {self.listing() or 'none.'}")
        return self._known[name]

    def listing(self) -> str:
        return "\n".join(
            f"{name}: {process.status}: {process.command[:_SHOWN_COMMAND_CHARS]}"
            for name, process in self._known.items()
        )
