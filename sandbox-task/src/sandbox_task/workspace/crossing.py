"""Files across the wall. A packs and B unpacks, so that everything in the workspace belongs to B from the start."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from sandbox_task.isolation.wall import Wall


def unpack(staging: Path, wall: Wall) -> None:
    """Everything in `staging` into the workspace. What stands in the way must have been removed."""
    packer = subprocess.Popen(["tar", "-C", str(staging), "-cf", "-", "."], stdout=subprocess.PIPE)
    assert packer.stdout is not None  # noqa: S101 - PIPE was asked for
    said = bytearray()
    with packer.stdout as archive:
        unpacked = wall.run(
            "tar -xf - --no-same-owner --no-overwrite-dir",
            timeout=limits.GIT_TRANSFER_SECONDS,
            on_output=said.extend,
            stdin=archive,
        )
    if packer.wait() != 0 or not unpacked.succeeded:
        raise RunError("internal_error", f"The workspace could not be filled: {said.decode(errors='replace')[-500:]}")


def remove(paths: Iterable[str], wall: Wall, private: Path) -> None:
    listing = private / "names"
    listing.write_bytes(b"".join(b"./" + path.encode(errors="surrogateescape") + b"\0" for path in paths))
    with listing.open("rb") as file:
        wall.run("xargs -0 rm -rf --", timeout=limits.GIT_SECONDS, on_output=ignore, stdin=file)


def ignore(_data: bytes) -> None:
    """Output that nobody needs."""
