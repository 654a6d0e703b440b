"""What the model is told about the repository at the start: bounded, best first, and what is left out is said.

Everything is read from the base commit in A's own objects, so no file of the workspace is touched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox_task.workspace.repository import Repository

_INTERESTING = (
    r"(agents|claude)\.md",
    r"prd\.json|prd\.md|docs/prd\.md|tasks/prd-[^/]+\.md|\.implement(\.md)?",
    r"readme(\.\w+)?",
    r"package\.json|pyproject\.toml|setup\.(py|cfg)|requirements[^/]*\.txt|cargo\.toml|go\.mod|gemfile|pom\.xml|build\.gradle(\.kts)?",
    r"makefile|justfile|tox\.ini|pytest\.ini|tsconfig\.json|\.sandpiper\.yml|contributing\.md",
)


@dataclass(frozen=True)
class Context:
    text: str
    files: int
    included: tuple[str, ...]
    omitted: tuple[str, ...]


def collect(repository: Repository, task: str) -> Context:
    paths = repository.paths(repository.base_tree)
    if not paths:
        return Context("The repository is empty.", 0, (), ())
    parts = [f"## Files ({len(paths)})\n{_tree(paths)}"]
    room = limits.CONTEXT_CHARS
    included, omitted = [], []
    for path in _best_first(paths, task):
        text = _text(repository, path)
        if text is None or len(text) > room:
            omitted.append(path)
            continue
        room -= len(text)
        included.append(path)
        parts.append(f"## {path}\n{text}")
    if omitted:
        parts.append(f"Left out for want of room, read them if you need them: {', '.join(omitted[:20])}")
    return Context("\n\n".join(parts), len(paths), tuple(included), tuple(omitted))


def _best_first(paths: Iterable[str], task: str) -> list[str]:
    """Files of general interest by kind, then those that the task names."""
    ranked = {}
    for path in paths:
        for rank, pattern in enumerate(_INTERESTING):
            if re.fullmatch(pattern, path, re.IGNORECASE):
                ranked[path] = rank
        if path not in ranked and _is_named(path, task):
            ranked[path] = len(_INTERESTING)
    return sorted(ranked, key=lambda path: (ranked[path], path))


def _is_named(path: str, task: str) -> bool:
    return path in task or (len(name := PurePosixPath(path).name) > 4 and "." in name and name in task)


def _tree(paths: list[str]) -> str:
    """The upper levels first: a deep tree must not hide what lies beside it."""
    shown = sorted(sorted(paths, key=lambda path: (path.count("/"), path))[: limits.CONTEXT_TREE_PATHS])
    rest = len(paths) - len(shown)
    return "\n".join(_printable(path) for path in shown) + (f"\n… and {rest} more" if rest else "")


def _text(repository: Repository, path: str) -> str | None:
    data = repository.show(repository.base_tree, path)
    if data is None or b"\0" in data:
        return None
    text = data.decode(errors="replace")
    cut = len(text) - limits.CONTEXT_FILE_CHARS
    return text if cut <= 0 else f"{text[: limits.CONTEXT_FILE_CHARS]}\n… {cut} more characters in {_printable(path)}"


def _printable(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="replace")
