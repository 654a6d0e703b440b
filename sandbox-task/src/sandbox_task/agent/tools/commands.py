"""Tools that run commands behind the wall, wait for them or not, and read what they said."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from sandbox_task.agent.tools.outcome import Arguments, Outcome, ToolError, ending_in_words
from sandbox_task.agent.tools.plain import PlainText
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandbox_task.agent.ports import Sink
    from sandbox_task.agent.tools.background import BackgroundProcess
    from sandbox_task.agent.tools.sessions import Sessions
    from sandbox_task.isolation.wall import Completed, OutputSink, Wall

Key = Literal["enter", "tab", "escape", "up", "down", "ctrl-c", "ctrl-d", "ctrl-z"]
_KEYS: dict[Key, bytes] = {
    "enter": b"\r",
    "tab": b"\t",
    "escape": b"\x1b",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "ctrl-c": b"\x03",
    "ctrl-d": b"\x04",
    "ctrl-z": b"\x1a",
}


class CommandArguments(Arguments):
    command: str = Field(min_length=1, description="Run by bash: pipes, && and here-documents work.")
    cwd: str = Field(default=".", description="Directory, relative to the repository's root.")
    timeout_seconds: int = Field(default=limits.DEFAULT_COMMAND_SECONDS, ge=1, le=limits.MAX_COMMAND_SECONDS)
    background: bool = Field(default=False, description="Do not wait (servers, watchers): returns an id.")
    tty: bool = Field(default=False, description="Give it a terminal.")


class RunCommand:
    name: ClassVar = "run_command"
    description: ClassVar = (
        "Run a shell command in the repository, without input. Returns its output (head and tail) and exit code."
    )
    writes: ClassVar = False  # it can, but the tree is compared at the end
    parallel: ClassVar = False
    arguments = CommandArguments

    def __init__(self, wall: Wall, sink: Sink, sessions: Sessions) -> None:
        self._wall, self._sink, self._sessions = wall, sink, sessions

    def shown(self, arguments: CommandArguments) -> Mapping[str, Any]:
        options = {name: True for name in ("background", "tty") if getattr(arguments, name)}
        return {"command": arguments.command, "cwd": arguments.cwd, **options}

    def run(self, arguments: CommandArguments, call_id: str) -> Outcome:
        return self._start(arguments, call_id) if arguments.background else self._wait_for(arguments, call_id)

    def _wait_for(self, arguments: CommandArguments, call_id: str) -> Outcome:
        with self._sessions.outputs.record(self._sink, call_id) as record:
            completed = self._run(arguments, record.feed)
        if not record.is_cut:
            self._sessions.outputs.drop(record.kept)
        data = {**self.shown(arguments), "exit_code": completed.exit_code, "ended_by": completed.ended_by}
        return Outcome(
            with_status(record.text, ending_in_words(completed)),
            data,
            succeeded=completed.succeeded,
            was_broken_off=completed.ended_by == "interrupt",
        )

    def _run(self, arguments: CommandArguments, on_output: OutputSink) -> Completed:
        run = partial(self._wall.run, arguments.command, cwd=arguments.cwd, timeout=arguments.timeout_seconds)
        if not arguments.tty:
            return run(on_output=on_output)
        plain = PlainText(on_output)
        completed = run(on_output=plain.feed, terminal=True)
        plain.close()
        return completed

    def _start(self, arguments: CommandArguments, call_id: str) -> Outcome:
        started = self._sessions.background.start(
            arguments.command, cwd=arguments.cwd, call_id=call_id, terminal=arguments.tty
        )
        return _news(started, {**self.shown(arguments), "process_id": started.output.name})


class OutputArguments(Arguments):
    id: str | None = Field(default=None, description="Without it, background processes are listed.")
    start_line: int | None = Field(default=None, ge=1, description="Without a range: what is new.")
    end_line: int | None = Field(default=None, ge=1)


class ReadOutput:
    name: ClassVar = "read_output"
    description: ClassVar = "Read what a background process said, or what was left out of a command's output."
    writes: ClassVar = False
    parallel: ClassVar = True
    arguments = OutputArguments

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def shown(self, arguments: OutputArguments) -> Mapping[str, Any]:
        return arguments.model_dump(exclude_none=True)

    def run(self, arguments: OutputArguments, _call_id: str) -> Outcome:
        if arguments.id is None:
            return Outcome(self._sessions.background.listing() or "There are no background processes.")
        output = self._sessions.outputs.find(arguments.id)
        if arguments.start_line or arguments.end_line:
            found = output.range(arguments.start_line or 1, arguments.end_line)
            return Outcome(found.text or f"There are no such lines: {output.lines:,} in all.", {"lines": found.lines})
        process = self._sessions.background.find(arguments.id)
        return _news(process, {}) if process else Outcome(output.news() or "Nothing new.")


class StopArguments(Arguments):
    id: str


class StopProcess:
    name: ClassVar = "stop"
    description: ClassVar = "End a background process and everything that it has started."
    writes: ClassVar = False
    parallel: ClassVar = False
    arguments = StopArguments

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def shown(self, arguments: StopArguments) -> Mapping[str, Any]:
        return arguments.model_dump()

    def run(self, arguments: StopArguments, _call_id: str) -> Outcome:
        process = self._sessions.background.get(arguments.id)
        process.process.end()
        process.process.wait(limits.KILL_SECONDS)
        return _news(process, {})


class InputArguments(Arguments):
    id: str
    text: str = ""
    keys: list[Key] = Field(default=[], description="Pressed after the text.")


class SendInput:
    name: ClassVar = "send_input"
    description: ClassVar = "Type into a background process that has a tty. Returns what is new."
    writes: ClassVar = False
    parallel: ClassVar = False
    arguments = InputArguments

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def shown(self, arguments: InputArguments) -> Mapping[str, Any]:
        return arguments.model_dump()

    def run(self, arguments: InputArguments, _call_id: str) -> Outcome:
        process = self._sessions.background.get(arguments.id)
        if not process.is_running:
            raise ToolError(f"{arguments.id} is not running any more: {process.status}.")
        if process.feed is None:
            raise ToolError(f"{arguments.id} was started without tty, so it takes no input.")
        typed = arguments.text.encode(errors="replace") + b"".join(_KEYS[key] for key in arguments.keys)
        if not process.feed.send(typed, seconds=limits.INPUT_SECONDS):
            raise ToolError(f"{arguments.id} does not take any input.")
        process.process.wait(limits.BACKGROUND_FIRST_SECONDS)
        return _news(process, {})


def _news(process: BackgroundProcess, data: dict[str, Any]) -> Outcome:
    status = f"{process.output.name}: {process.status}"
    return Outcome(with_status(process.output.news(), status), {**data, "status": process.status})


def with_status(text: str, status: str) -> str:
    """On a line of its own, also after output that ends without one."""
    separator = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{separator}[{status}]"
