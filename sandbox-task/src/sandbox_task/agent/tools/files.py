"""Tools that read and write files. All of it happens as B, so that a link leads nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from sandbox_task.agent.tools.outcome import Arguments, Outcome, ToolError
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sandbox_task.agent.ports import Sink
    from sandbox_task.isolation.wall import Wall


class ReadArguments(Arguments):
    path: str = Field(min_length=1, description="Relative to the repository's root.")
    start_line: int | None = Field(default=None, ge=1)
    end_line: int | None = Field(default=None, ge=1)


class ReadFile:
    name: ClassVar = "read_file"
    description: ClassVar = "Read a text file, or a range of its lines."
    writes: ClassVar = False
    arguments = ReadArguments

    def __init__(self, wall: Wall) -> None:
        self._wall = wall

    def shown(self, arguments: ReadArguments) -> Mapping[str, Any]:
        return arguments.model_dump(exclude_none=True)

    def run(self, arguments: ReadArguments, _call_id: str) -> Outcome:
        first, last = arguments.start_line or 1, arguments.end_line
        lines: list[str] = []
        room, number = limits.MODEL_OUTPUT_CHARS, 0
        for number, line in enumerate(_lines(self._wall, arguments.path), start=1):
            if number < first:
                continue
            if last is not None and number > last:
                break
            room -= len(line)
            if room < 0:
                lines.append(f"… cut at line {number}: read on with start_line={number}\n")
                break
            lines.append(line)
        if not lines:
            raise (
                ToolError(f"{arguments.path} has no line {first}.")
                if number
                else ToolError(f"{arguments.path} is empty.")
            )
        return Outcome("".join(lines), {"lines": len(lines)})


class WriteArguments(Arguments):
    path: str = Field(min_length=1, description="Relative to the repository's root.")
    content: str


class WriteFile:
    name: ClassVar = "write_file"
    description: ClassVar = "Write a whole file; directories are made as needed."
    writes: ClassVar = True
    arguments = WriteArguments

    def __init__(self, wall: Wall, sink: Sink) -> None:
        self._wall, self._sink = wall, sink

    def shown(self, arguments: WriteArguments) -> Mapping[str, Any]:
        return {"path": arguments.path, "bytes": len(arguments.content.encode())}

    def run(self, arguments: WriteArguments, _call_id: str) -> Outcome:
        _write(self._wall, self._sink, arguments.path, arguments.content)
        return Outcome(f"{arguments.path} is written.")


class Edit(Arguments):
    old: str = Field(min_length=1, description="Text that occurs exactly once in the file.")
    new: str


class EditArguments(Arguments):
    path: str = Field(min_length=1, description="Relative to the repository's root.")
    edits: list[Edit] = Field(min_length=1)


class EditFile:
    name: ClassVar = "edit_file"
    description: ClassVar = "Replace exact pieces of text in a file, one after the other; all of them or none."
    writes: ClassVar = True
    arguments = EditArguments

    def __init__(self, wall: Wall, sink: Sink) -> None:
        self._wall, self._sink = wall, sink

    def shown(self, arguments: EditArguments) -> Mapping[str, Any]:
        return {"path": arguments.path, "edits": len(arguments.edits)}

    def run(self, arguments: EditArguments, _call_id: str) -> Outcome:
        text = _whole_text(self._wall, arguments.path)
        for number, edit in enumerate(arguments.edits, start=1):
            if (count := text.count(edit.old)) != 1:
                found = f"occurs {count} times" if count else "does not occur"
                raise ToolError(f"Edit {number}: its old text {found} in {arguments.path}. Nothing was changed.")
            text = text.replace(edit.old, edit.new)
        _write(self._wall, self._sink, arguments.path, text)
        return Outcome(f"{arguments.path} is changed ({len(arguments.edits)} edits).")


def _lines(wall: Wall, path: str) -> Iterator[str]:
    """Line by line, a part at a time: the file may be larger than what fits here."""
    offset, rest = 0, b""
    while True:
        part = wall.read_file(path, offset=offset, limit=limits.MAX_READ_BYTES)
        if offset == 0 and b"\0" in part.data:
            raise ToolError(f"{path} is a binary file of {part.size:,} bytes.")
        offset += len(part.data)
        *whole, rest = (rest + part.data).split(b"\n")
        yield from (line.decode(errors="replace") + "\n" for line in whole)
        if not part.data or offset >= part.size:
            break
    if rest:
        yield rest.decode(errors="replace")


def _whole_text(wall: Wall, path: str) -> str:
    part = wall.read_file(path, limit=limits.MAX_WRITE_BYTES)
    if part.size > len(part.data):
        raise ToolError(f"{path} has {part.size:,} bytes, too many to edit here: use a command.")
    try:
        return part.data.decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"{path} is not UTF-8 text.") from error


def _write(wall: Wall, sink: Sink, path: str, content: str) -> None:
    data = content.encode(errors="surrogatepass")
    if len(data) > limits.MAX_WRITE_BYTES:
        raise ToolError(f"{len(data):,} bytes are too many for one file written here: use a command.")
    wall.write_file(path, data)
    sink.emit("file_changed", path=path, bytes=len(data))
