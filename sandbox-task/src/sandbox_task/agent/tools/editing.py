"""The tool that changes files by exact replacement."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from sandbox_task.agent.tools.files import whole_text, write
from sandbox_task.agent.tools.outcome import Arguments, Outcome, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandbox_task.agent.ports import Sink
    from sandbox_task.isolation.wall import Wall

_NAMED_PLACES = 10
_SIMILAR_LINES = 3
_COMPARED_LINES = 20_000  # comparing is slow, and further away than this a likeness is chance
_SHOWN_LINE_CHARS = 200


class Edit(Arguments):
    old: str = Field(min_length=1, description="Text that occurs exactly once in the file.")
    new: str
    replace_all: bool = Field(default=False, description="`old` may occur more often: replace each.")


class EditArguments(Arguments):
    path: str = Field(min_length=1, description="Relative to the repository's root.")
    edits: list[Edit] = Field(min_length=1)


class EditFile:
    name: ClassVar = "edit_file"
    description: ClassVar = "Replace exact pieces of text in a file, one after the other; all of them or none."
    writes: ClassVar = True
    parallel: ClassVar = False
    arguments = EditArguments

    def __init__(self, wall: Wall, sink: Sink) -> None:
        self._wall, self._sink = wall, sink

    def shown(self, arguments: EditArguments) -> Mapping[str, Any]:
        return {"path": arguments.path, "edits": len(arguments.edits)}

    def run(self, arguments: EditArguments, _call_id: str) -> Outcome:
        before = text = whole_text(self._wall, arguments.path)
        for number, edit in enumerate(arguments.edits, start=1):
            try:
                text = _replaced(text, edit)
            except ToolError as error:
                raise ToolError(f"Edit {number} of {arguments.path}: {error} Nothing was changed.") from error
        if text == before:
            raise ToolError(f"The edits leave {arguments.path} as it was.")
        write(self._wall, self._sink, arguments.path, text)
        edits = "1 edit" if len(arguments.edits) == 1 else f"{len(arguments.edits)} edits"
        return Outcome(f"{arguments.path} is changed ({edits}).", path=arguments.path)


def _replaced(text: str, edit: Edit) -> str:
    old, new = _with_line_ends_of(text, edit)
    count = text.count(old)
    if count == 0:
        raise ToolError(f"its old text does not occur.{_similar(text, edit.old)}")
    if count > 1 and not edit.replace_all:
        raise ToolError(f"its old text occurs {count} times, {_places(text, old)}: give more of the text around it.")
    return text.replace(old, new)


def _with_line_ends_of(text: str, edit: Edit) -> tuple[str, str]:
    """Models write LF; in a file with CRLF the edit means CRLF."""
    crlf = text.count("\r\n")
    if crlf == 0 or (edit.old in text and crlf < text.count("\n")):
        return edit.old, edit.new
    return _crlf(edit.old), _crlf(edit.new)


def _crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _places(text: str, old: str) -> str:
    lines: list[int] = []
    position = text.find(old)
    while position >= 0 and len(lines) < _NAMED_PLACES:
        lines.append(text.count("\n", 0, position) + 1)
        position = text.find(old, position + len(old))
    return f"in lines {', '.join(map(str, lines))}{' …' if position >= 0 else ''}"


def _similar(text: str, old: str) -> str:
    """The lines that look most like the first line that was looked for."""
    wanted = next((line.strip() for line in old.splitlines() if line.strip()), "")
    numbers: dict[str, int] = {}
    for number, line in enumerate(text.splitlines()[:_COMPARED_LINES], start=1):
        numbers.setdefault(line[:_SHOWN_LINE_CHARS].strip(), number)
    nearest = difflib.get_close_matches(wanted[:_SHOWN_LINE_CHARS], numbers, n=_SIMILAR_LINES)
    shown = "".join(f"\n{number}: {line}" for line in nearest for number in (numbers[line],))
    return f" The nearest lines are:{shown}\n" if shown else ""
