"""What in a repository is not as a reader of the result might expect, in sentences for the run's warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox_task.workspace.names import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox_task.workspace.narrowing import Narrowing
    from sandbox_task.workspace.objects import Entry

_NAMED = 5


def find_surprises(entries: Sequence[Entry], narrowing: Narrowing) -> list[str]:
    found = []
    if submodules := [entry.path for entry in entries if entry.is_submodule]:
        found.append(f"Submodules are not checked out and stay as they are: {_some(submodules)}.")
    if absent := [path for path in narrowing.paths if not any(_is_below(path, entry.path) for entry in entries)]:
        found.append(f"The repository has nothing at these `paths`: {_some(absent)}.")
    return found


def _is_below(path: str, entry: str) -> bool:
    return f"{entry}/".startswith(f"{path}/")


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(printable(path) for path in paths[:_NAMED]) + more
