"""Starts ministack, with three of its ways mended.

Run by ministack's own Python, as a file: nothing of ours is importable there.

- Layers are directories that all workers share. Each new worker of a function would otherwise unpack and compile
  60 MB, seconds of work that a real Lambda does not do either: there, layers are a read-only file system. What is
  deployed as a layer is a zip with one entry that names the shared directory.
- A WebSocket message that is nested too deeply to be read goes to `$default`, like any other that names no route.
  Otherwise it would end its connection.
- After RunTask and StopTask the ECS agent is told to look: ministack itself runs nothing.
"""

from __future__ import annotations

import contextlib
import os
import socket
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

POINTER = "sandpiper-layer"
_LAYERS = Path(os.environ.get("SANDPIPER_LAYERS", "/nonexistent"))
_extract_everything = zipfile.ZipFile.extractall


def link_layer(archive: zipfile.ZipFile, path: str, *others: Any) -> None:
    """In place of `ZipFile.extractall`: where a layer should be unpacked, a link to its directory appears."""
    if archive.namelist() != [POINTER]:
        _extract_everything(archive, path, *others)
        return
    target = Path(path)
    target.rmdir()
    target.symlink_to(_LAYERS / archive.read(POINTER).decode(), target_is_directory=True)


def route_of_any_text(select: Callable[[str, str], str]) -> Callable[[str, str], str]:
    def selected(expression: str, text: str) -> str:
        try:
            return select(expression, text)
        except RecursionError:
            return "$default"

    return selected


def ringing(action: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def acted(data: Any) -> Any:
        answer = action(data)
        ring()
        return answer

    return acted


def ring() -> None:
    """An agent that is not there yet will look by itself, and one that has been told often enough need not hear it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell, contextlib.suppress(OSError):
        bell.settimeout(0)
        bell.sendto(b".", os.environ["SANDPIPER_ECS_BELL"])


if __name__ == "__main__":
    # installed where this runs, not where it is checked
    from ministack.app import main  # type: ignore[import-not-found]
    from ministack.services import apigateway, ecs  # type: ignore[import-not-found]

    zipfile.ZipFile.extractall = link_layer  # type: ignore[assignment,method-assign]
    apigateway._evaluate_route_selection = route_of_any_text(apigateway._evaluate_route_selection)  # noqa: SLF001
    for name, action in (("RunTask", "_run_task"), ("StopTask", "_stop_task")):
        ecs._ACTION_MAP[name] = ringing(getattr(ecs, action))  # noqa: SLF001
        setattr(ecs, action, ecs._ACTION_MAP[name])  # noqa: SLF001
    main()
