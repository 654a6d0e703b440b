"""Which modules a module imports, read from the source: nothing is run."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.infra.sources import CORE, FUNCTIONS, SANDBOX_TASK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCES = (FUNCTIONS, CORE, SANDBOX_TASK)


@dataclass(frozen=True)
class Reached:
    inside: frozenset[str]  # modules of ours
    outside: frozenset[str]  # all others


@functools.cache
def reachable(start: str) -> Reached:
    inside: set[str] = set()
    outside: set[str] = set()
    ahead = {start}
    while ahead:
        name = ahead.pop()
        if path := find(name):
            inside.add(name)
            ahead |= imports(path) - inside - outside
        else:
            outside.add(name)
    return Reached(frozenset(inside), frozenset(outside))


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """Every module that running this file may load, also from inside a function."""
    return frozenset(name for node in _executed(ast.parse(path.read_text())) for name in _named(node))


def find(module: str) -> Path | None:
    relative = module.replace(".", "/")
    candidates = (source / end for source in SOURCES for end in (f"{relative}.py", f"{relative}/__init__.py"))
    return next((path for path in candidates if path.exists()), None)


def modules(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes except those that only a type checker sees."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            for alternative in child.orelse:
                yield from _executed(alternative)
        else:
            yield from _executed(child)


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
        submodules = [f"{node.module}.{alias.name}" for alias in node.names]
        found = [name for name in submodules if find(name)]
        yield from found or [node.module]
