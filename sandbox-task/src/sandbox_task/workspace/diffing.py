"""What a tree has changed against another, as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox_task.workspace import objects
from sandpiper import limits
from sandpiper.models.run import DiffStat

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_task.workspace.git import Git


def stat(git: Git, base: str, tree: str) -> DiffStat:
    """Of the diff as it is written: a renamed file is one. Names are quoted, so that each has its line."""
    raw = git.run("diff-tree", "-r", "--find-renames", "--numstat", base, tree)
    rows = [row.split(b"\t") for row in raw.splitlines()]
    counts = [(int(added), int(removed)) for added, removed, *_ in rows if added != b"-"]
    return DiffStat(files=len(rows), insertions=sum(a for a, _ in counts), deletions=sum(d for _, d in counts))


def write(git: Git, base: str, tree: str, path: Path) -> None:
    options = ("diff", "--no-ext-diff", "--no-textconv", "--find-renames", "--ignore-submodules")
    huge = _huge_changes(git, base, tree)
    rest = [f":(top,exclude,literal){name}" for name in huge]
    with path.open("wb") as file:
        git.run(*options, "--binary", base, tree, "--", ":/", *rest, stdout=file)
        if huge:
            named = [f":(top,literal){name}" for name in huge]
            git.run(*options, base, tree, "--", *named, stdout=file)


def _huge_changes(git: Git, base: str, tree: str) -> list[str]:
    sides = [
        side for each in objects.list_differences(git, base, tree) for side in (each.before, each.after) if side.is_file
    ]
    sized = zip(sides, objects.blob_sizes(git, [side.oid for side in sides]), strict=True)
    return sorted({side.path for side, size in sized if size > limits.MAX_PATCH_FILE_BYTES})
