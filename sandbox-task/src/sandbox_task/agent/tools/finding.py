"""Tools that find their way: which files there are, and what is in them."""

from __future__ import annotations

import os.path
import shlex
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from sandbox_task.agent.tools.outcome import Arguments, Outcome, ToolError, ending_in_words
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandbox_task.isolation.wall import Wall

_FOUND_NOTHING = 1  # how rg and grep say so


class ListArguments(Arguments):
    path: str = Field(default=".", description="Directory, relative to the repository's root.")
    glob: str | None = Field(default=None, description="For example `**/*.py`.")


class ListFiles:
    name: ClassVar = "list_files"
    description: ClassVar = "List files below a directory, without those that git ignores."
    writes: ClassVar = False
    parallel: ClassVar = True
    arguments = ListArguments

    def __init__(self, wall: Wall) -> None:
        self._wall = wall

    def shown(self, arguments: ListArguments) -> Mapping[str, Any]:
        return arguments.model_dump(exclude_none=True)

    def run(self, arguments: ListArguments, _call_id: str) -> Outcome:
        path = _inside(self._wall, arguments.path)
        glob = shlex.quote(arguments.glob) if arguments.glob else ""
        with_rg = f"rg --files --hidden --glob '!.git' {glob and f'--glob {glob}'} --sort path -- {path}"
        without = f"find {path} -name .git -prune -o -type f {glob and f'-path {glob}'} -print"
        return _look(self._wall, with_rg, without)


class SearchArguments(Arguments):
    pattern: str = Field(min_length=1, description="A regular expression.")
    path: str = Field(default=".", description="File or directory, relative to the repository's root.")
    glob: str | None = Field(default=None, description="Only files like this, for example `*.py`.")
    ignore_case: bool = False
    context: int = Field(default=0, ge=0, le=limits.MAX_SEARCH_CONTEXT, description="Lines around each match.")


class Search:
    name: ClassVar = "search"
    description: ClassVar = "Search the files for a regular expression (ripgrep). Returns path:line:text."
    writes: ClassVar = False
    parallel: ClassVar = True
    arguments = SearchArguments

    def __init__(self, wall: Wall) -> None:
        self._wall = wall

    def shown(self, arguments: SearchArguments) -> Mapping[str, Any]:
        return arguments.model_dump(exclude_defaults=True)

    def run(self, arguments: SearchArguments, _call_id: str) -> Outcome:
        pattern, path = shlex.quote(arguments.pattern), _inside(self._wall, arguments.path)
        glob = shlex.quote(arguments.glob) if arguments.glob else ""
        both = f"{'--ignore-case' if arguments.ignore_case else ''} --context {arguments.context}"
        with_rg = (
            "rg --with-filename --line-number --no-heading --hidden --glob '!.git' --max-columns 300 "
            f"--max-columns-preview --sort path {both} {glob and f'--glob {glob}'} --regexp {pattern} -- {path}"
        )
        without = f"grep -rnIHE --exclude-dir=.git {both} {glob and f'--include {glob}'} -e {pattern} -- {path}"
        return _look(self._wall, with_rg, without)


def _inside(wall: Wall, path: str) -> str:
    """For the shell. The wall is what protects; this is to say so in words."""
    place = os.path.normpath(os.path.join(wall.workspace, path))  # noqa: PTH118 - pathlib would not resolve ".."
    if place != wall.workspace and not place.startswith(f"{wall.workspace}/"):
        raise ToolError(f"{path} is outside the workspace.")
    return shlex.quote(path)


def _look(wall: Wall, with_rg: str, without: str) -> Outcome:
    found = _Found()
    completed = wall.run(
        f"if command -v rg >/dev/null; then {with_rg}; else {without}; fi",
        timeout=limits.GIT_SECONDS,
        on_output=found.add,
    )
    if completed.exit_code == _FOUND_NOTHING:
        return Outcome("Nothing found.")
    if not completed.succeeded:
        raise ToolError(str(found).strip() or ending_in_words(completed))
    return Outcome(str(found) or "Nothing found.")


class _Found:
    """The first lines, and how many more there are."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._lines = 0

    def add(self, data: bytes) -> None:
        self._lines += data.count(b"\n")
        self._head += data[: limits.MODEL_OUTPUT_CHARS - len(self._head)]

    def __str__(self) -> str:
        shown = self._head.count(b"\n")
        if shown == self._lines:
            return self._head.decode(errors="replace").rstrip("\n")
        whole = self._head[: self._head.rfind(b"\n") + 1].decode(errors="replace")
        return f"{whole}… {self._lines - shown:,} more lines: narrow it down by path, glob or pattern"
