"""Tools that run programs behind the wall."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from sandbox_task.agent.tools.outcome import Arguments, Outcome, ToolError
from sandbox_task.output import HeadAndTail
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandbox_task.agent.ports import Sink
    from sandbox_task.isolation.wall import Completed, Wall

_FOUND_NOTHING = 1  # how rg and grep say so
_LISTED_CHARS = limits.MODEL_OUTPUT_CHARS


class CommandArguments(Arguments):
    command: str = Field(min_length=1, description="Run by bash: pipes, && and here-documents work.")
    cwd: str = Field(default=".", description="Directory, relative to the repository's root.")
    timeout_seconds: int = Field(default=limits.DEFAULT_COMMAND_SECONDS, ge=1, le=limits.MAX_COMMAND_SECONDS)


class RunCommand:
    name: ClassVar = "run_command"
    description: ClassVar = "Run a shell command in the repository. Returns its output (head and tail) and exit code."
    writes: ClassVar = False  # it can, but the tree is compared at the end
    arguments = CommandArguments

    def __init__(self, wall: Wall, sink: Sink) -> None:
        self._wall, self._sink = wall, sink

    def shown(self, arguments: CommandArguments) -> Mapping[str, Any]:
        return {"command": arguments.command, "cwd": arguments.cwd}

    def run(self, arguments: CommandArguments, call_id: str) -> Outcome:
        with self._sink.output(tool_id=call_id) as output:
            completed = self._wall.run(
                arguments.command, cwd=arguments.cwd, timeout=arguments.timeout_seconds, on_output=output.feed
            )
        ending = _ending(completed, arguments.timeout_seconds)
        data = {"command": arguments.command, "cwd": arguments.cwd, "exit_code": completed.exit_code}
        return Outcome(f"{output.shown}\n[{ending}]".lstrip("\n"), {**data, "ended_by": completed.ended_by})


class ListArguments(Arguments):
    path: str = Field(default=".", description="Directory, relative to the repository's root.")
    glob: str | None = Field(default=None, description="For example `**/*.py`.")


class ListFiles:
    name: ClassVar = "list_files"
    description: ClassVar = "List files below a directory, without those that git ignores."
    writes: ClassVar = False
    arguments = ListArguments

    def __init__(self, wall: Wall) -> None:
        self._wall = wall

    def shown(self, arguments: ListArguments) -> Mapping[str, Any]:
        return arguments.model_dump(exclude_none=True)

    def run(self, arguments: ListArguments, _call_id: str) -> Outcome:
        path = shlex.quote(arguments.path)
        glob = shlex.quote(arguments.glob) if arguments.glob else ""
        with_rg = f"rg --files --hidden --glob '!.git' {f'--glob {glob}' if glob else ''} -- {path} | sort"
        without = f"find {path} -name .git -prune -o -type f {f'-path {glob}' if glob else ''} -print | sort"
        return _look(self._wall, with_rg, without)


class SearchArguments(Arguments):
    pattern: str = Field(min_length=1, description="A regular expression.")
    path: str = Field(default=".", description="File or directory, relative to the repository's root.")


class Search:
    name: ClassVar = "search"
    description: ClassVar = "Search the files for a regular expression (ripgrep). Returns path:line:text."
    writes: ClassVar = False
    arguments = SearchArguments

    def __init__(self, wall: Wall) -> None:
        self._wall = wall

    def shown(self, arguments: SearchArguments) -> Mapping[str, Any]:
        return arguments.model_dump()

    def run(self, arguments: SearchArguments, _call_id: str) -> Outcome:
        pattern, path = shlex.quote(arguments.pattern), shlex.quote(arguments.path)
        return _look(
            self._wall,
            f"rg --line-number --no-heading --hidden --glob '!.git' --max-columns 300 --regexp {pattern} -- {path}",
            f"grep -rnIE --exclude-dir=.git -e {pattern} -- {path}",
        )


def _look(wall: Wall, with_rg: str, without: str) -> Outcome:
    found = HeadAndTail(_LISTED_CHARS, 0)
    completed = wall.run(
        f"if command -v rg >/dev/null; then {with_rg}; else {without}; fi",
        timeout=limits.GIT_SECONDS,
        on_output=lambda data: _add(found, data),
    )
    if completed.exit_code not in (0, _FOUND_NOTHING):
        raise ToolError(str(found).strip() or _ending(completed, limits.GIT_SECONDS))
    return Outcome(str(found).strip() or "Nothing found.")


def _add(found: HeadAndTail, data: bytes) -> None:
    found.add(data.decode(errors="replace"))


def _ending(completed: Completed, seconds: int) -> str:
    match completed.ended_by:
        case "timeout":
            return f"killed after {seconds} s, with everything it had started"
        case "interrupt":
            return "interrupted"
        case "wall_lost":
            return "the command ended the sandbox's own process; what ran in the background is gone"
        case "itself":
            return f"exit code {completed.exit_code}"
