"""Tools that read and write files. All of it happens as B, so that a link leads nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from sandbox_task.agent.tools.excerpt import excerpt
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
    parallel: ClassVar = True
    arguments = ReadArguments

    def __init__(self, wall: Wall) -> None:
        self._wall = wall

    def shown(self, arguments: ReadArguments) -> Mapping[str, Any]:
        return arguments.model_dump(exclude_none=True)

    def run(self, arguments: ReadArguments, _call_id: str) -> Outcome:
        first = arguments.start_line or 1
        found = excerpt(_chunks(self._wall, arguments.path), first, arguments.end_line)
        if not found.lines:
            missing = f"has no line {first}" if found.passed or first > 1 else "is empty"
            raise ToolError(f"{arguments.path} {missing}.")
        return Outcome(found.text, {"lines": found.lines}, arguments.path)


class WriteArguments(Arguments):
    path: str = Field(min_length=1, description="Relative to the repository's root.")
    content: str


class WriteFile:
    name: ClassVar = "write_file"
    description: ClassVar = "Write a whole file; directories are made as needed."
    writes: ClassVar = True
    parallel: ClassVar = False
    arguments = WriteArguments

    def __init__(self, wall: Wall, sink: Sink) -> None:
        self._wall, self._sink = wall, sink

    def shown(self, arguments: WriteArguments) -> Mapping[str, Any]:
        return {"path": arguments.path, "bytes": len(arguments.content.encode())}

    def run(self, arguments: WriteArguments, _call_id: str) -> Outcome:
        write(self._wall, self._sink, arguments.path, arguments.content)
        return Outcome(f"{arguments.path} is written.", path=arguments.path)


def _chunks(wall: Wall, path: str) -> Iterator[bytes]:
    """A part at a time. What is behind the wall may lie about the size, and can't keep us here for ever."""
    offset = 0
    while offset < limits.WALL_FILE_BYTES:
        part = wall.read_file(path, offset=offset, limit=limits.MAX_READ_BYTES)
        if offset == 0 and b"\0" in part.data:
            raise ToolError(f"{path} is a binary file of {part.size:,} bytes.")
        if not part.data:
            return
        yield part.data
        offset += len(part.data)


def whole_text(wall: Wall, path: str) -> str:
    part = wall.read_file(path, limit=limits.MAX_WRITE_BYTES)
    if part.size > len(part.data):
        raise ToolError(f"{path} has {part.size:,} bytes, too many to edit here: use a command.")
    try:
        return part.data.decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"{path} is not UTF-8 text, so it can't be edited here: use a command.") from error


def write(wall: Wall, sink: Sink, path: str, content: str) -> None:
    data = content.encode()
    if len(data) > limits.MAX_WRITE_BYTES:
        raise ToolError(f"{len(data):,} bytes are too many for one file written here: use a command.")
    wall.write_file(path, data)
    sink.emit("file_changed", path=path, bytes=len(data))
