"""Files as the model reads and writes them: by the executor, as B. Carried to B's interpreter (see there)."""

# Importing pathlib would be half of the time that the wall takes to go up.
# ruff: noqa: PTH103, PTH118, PTH120

from __future__ import annotations

import binascii
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any


def read(root: str, path: str, offset: int, limit: int) -> dict[str, Any]:
    fd = os.open(_inside(root, path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        size = _regular(file)
        file.seek(offset)
        data = file.read(limit)
    return {"data": binascii.b2a_base64(data, newline=False).decode(), "size": size}


def write(root: str, path: str, data: bytes) -> None:
    place = _inside(root, path)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(place, flags, 0o664), "wb") as file:
        _regular(file)
        file.truncate()
        file.write(data)


def _inside(root: str, path: str) -> str:
    """The real place of `path`; a link that leads out of the workspace is refused."""
    real = os.path.realpath(os.path.join(root, path))
    if real != root and not real.startswith(root + "/"):
        raise ValueError(f"{path} is outside the workspace")
    return real


def _regular(file: IO[bytes]) -> int:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("not a regular file")
    return status.st_size
