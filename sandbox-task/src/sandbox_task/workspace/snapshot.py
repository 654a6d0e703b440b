"""The whole workspace as one file, what git ignores included.

It is packed and unpacked by B, so it reaches no further than B can: A only compresses, counts and carries.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, BinaryIO, Self, cast

import zstandard

from sandbox_task.isolation.wall import WallError
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Buffer, Iterable, Iterator

    from sandbox_task.isolation.wall import Completed, Wall
    from sandpiper.ports import Blobs

_PACK = "tar -cf - . >&0"  # what comes as input is a pipe to be written to: output is bounded, and for people
_UNPACK = "tar -xpf - --no-same-owner --no-overwrite-dir"
_PIECE = 1 << 20


class TooLarge(Exception):
    """The workspace has more bytes than are stored."""

    def __init__(self, most: int) -> None:
        super().__init__(f"The workspace has more than {most / 1024**2:,.0f} MiB.")


def store(wall: Wall, blobs: Blobs, key: str, *, at_most: int = limits.SNAPSHOT_BYTES) -> int:
    """How many bytes it had, unpacked. Nothing of B may be alive. Raises TooLarge, WallError."""
    ours, theirs = _wide_pipe()
    with os.fdopen(ours, "rb", buffering=0) as source, _Command(wall, _PACK, theirs) as packing:
        counted = _Counted(source, packing, at_most)
        compressor = zstandard.ZstdCompressor(level=limits.SNAPSHOT_LEVEL, threads=-1, write_checksum=True)
        with compressor.stream_reader(cast("IO[bytes]", counted), read_size=_PIECE) as packed:
            pieces = iter(lambda: packed.read(limits.UPLOAD_PART_BYTES), b"")
            blobs.put_stream(key, pieces, content_type="application/zstd")
        return counted.bytes


def restore(wall: Wall, blobs: Blobs, key: str, *, at_most: int = limits.SNAPSHOT_BYTES) -> None:
    """Into an empty workspace. Raises TooLarge, NotFound, WallError."""
    theirs, ours = _wide_pipe()
    with _Command(wall, _UNPACK, theirs) as unpacking:
        with os.fdopen(ours, "wb", buffering=0) as target, _told_by(unpacking):
            unpacked = _Bounded(target, at_most)
            decompressor = zstandard.ZstdDecompressor()
            with decompressor.stream_writer(cast("IO[bytes]", unpacked), closefd=False) as writer:
                blobs.get_file(key, cast("BinaryIO", _Lines(writer)))
        unpacking.finish()


def _wide_pipe() -> tuple[int, int]:
    reading, writing = os.pipe2(os.O_CLOEXEC)
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIECE)
    return reading, writing


class _Command:
    """A command behind the wall with one end of a pipe, run by a thread of its own."""

    def __init__(self, wall: Wall, command: str, pipe: int) -> None:
        self._wall, self._command, self._pipe = wall, command, pipe
        self._said = bytearray()
        self._completed: Completed | None = None
        self._thread = threading.Thread(target=self._run, name="snapshot", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Who has left before its end has no use for it any more, and has closed the other end of the pipe."""
        self._thread.join(limits.KILL_SECONDS)

    def finish(self) -> None:
        """Raises WallError unless it ended well."""
        self._thread.join()
        if self._completed is None or not self._completed.succeeded:
            raise WallError(f"The workspace could not be carried over: {self._said.decode(errors='replace')[-500:]}")

    def _run(self) -> None:
        with contextlib.suppress(WallError), os.fdopen(self._pipe, "rb", buffering=0) as pipe:  # told by `finish`
            self._completed = self._wall.run(
                self._command, timeout=limits.SNAPSHOT_SECONDS, on_output=self._said.extend, stdin=pipe
            )


@contextmanager
def _told_by(command: _Command) -> Iterator[None]:
    """A pipe that nobody reads any more: the command says why."""
    try:
        yield
    except BrokenPipeError:
        command.finish()
        raise
    except zstandard.ZstdError as error:
        raise WallError("The workspace could not be carried over: what was stored is damaged.") from error


class _Counted:
    """Read from the command; its end counts only if the command ended well."""

    def __init__(self, source: IO[bytes], command: _Command, at_most: int) -> None:
        self._source, self._command, self._at_most = source, command, at_most
        self.bytes = 0

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        if not data:
            self._command.finish()
        self.bytes += len(data)
        if self.bytes > self._at_most:
            raise TooLarge(self._at_most)
        return data


class _Bounded:
    """Written to the command, at most so much."""

    def __init__(self, target: IO[bytes], at_most: int) -> None:
        self._target, self._at_most, self._left = target, at_most, at_most

    def write(self, data: Buffer) -> int:
        view = memoryview(data)
        self._left -= len(view)
        if self._left < 0:
            raise TooLarge(self._at_most)
        written = 0
        while written < len(view):
            written += self._target.write(view[written:]) or 0
        return len(view)

    def flush(self) -> None:
        """Nothing is held back."""


class _Lines:
    """As much of a file as a store writes to."""

    def __init__(self, writer: zstandard.ZstdDecompressionWriter) -> None:
        self._writer = writer

    def write(self, data: bytes) -> int:
        return self._writer.write(data)

    def writelines(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self._writer.write(piece)
