"""Modules of ours for an interpreter that can't be expected to be able to read our files: B's.

They travel over its line to A. What reads them there is `finder`.
"""

from __future__ import annotations

import marshal
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_task.isolation import finder

if TYPE_CHECKING:
    from types import ModuleType

_FOR_ANY_PYTHON = 2  # a notation of `marshal` that every one reads


@cache
def packed(modules: tuple[ModuleType, ...], *, compiled: bool) -> bytes:
    """To compile them there would be a fifth of the time that the wall takes to go up, and A has done it already; but
    only the same interpreter can read that."""
    parts = {module.__name__: _compiled(module) if compiled else _text(module) for module in modules}
    return marshal.dumps(parts, _FOR_ANY_PYTHON)


def unpacking(carried: bytes) -> str:
    """To be run ahead of what imports them, where `carried` is what comes next on descriptor 0."""
    return f"{_text(finder)}\nCarried({len(carried)}).be_found()\n"


def _text(module: ModuleType) -> str:
    return Path(str(module.__file__)).read_text(encoding="utf-8")


def _compiled(module: ModuleType) -> bytes:
    loader = SourceFileLoader(module.__name__, str(module.__file__))
    return marshal.dumps(loader.get_code(module.__name__))
