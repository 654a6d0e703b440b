"""Modules of ours for an interpreter that can't be expected to be able to read our files: B's.

They travel in its arguments. What reads them there is `finder`.
"""

from __future__ import annotations

import base64
import marshal
import zlib
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_task.isolation import finder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

_PLAIN = 2  # a notation of `marshal` that every interpreter reads
_QUICKLY = 1


def carried(modules: Iterable[ModuleType], *, compiled: bool) -> str:
    """To be run ahead of what imports them. To compile them there would be a third of the time that the wall takes to
    go up, and A has done it already; but only the same interpreter can read that."""
    parts = {module.__name__: _compiled(module) if compiled else _text(module) for module in modules}
    packed = base64.b64encode(zlib.compress(marshal.dumps(parts, _PLAIN), _QUICKLY)).decode()
    return f"{_text(finder)}\nCarried({packed!r}).be_found()\n"


def _text(module: ModuleType) -> str:
    return Path(str(module.__file__)).read_text(encoding="utf-8")


def _compiled(module: ModuleType) -> bytes:
    loader = SourceFileLoader(module.__name__, str(module.__file__))
    return marshal.dumps(loader.get_code(module.__name__))
