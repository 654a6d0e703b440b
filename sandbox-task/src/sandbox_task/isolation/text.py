"""Modules of ours for an interpreter that can't be expected to be able to read our files: B's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def as_text(*modules: ModuleType) -> str:
    """To be run ahead of what imports them; those that import others of them come last."""
    parts = ["import sys, types\n"]
    for module in modules:
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        parts.append(
            f"module = sys.modules[{module.__name__!r}] = types.ModuleType({module.__name__!r})\n"
            f"exec({source!r}, module.__dict__)\n"
        )
    return "".join(parts)


def as_text_for_later(module: ModuleType) -> str:
    """The same for one that few need: it is read when something of it is first asked for."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    return (
        "import sys, types\n"
        f"later = sys.modules[{module.__name__!r}] = types.ModuleType({module.__name__!r})\n"
        "def read(name, module=later):\n"
        "    if name.startswith('__'):\n"
        "        raise AttributeError(name)\n"
        "    del module.__getattr__\n"
        f"    exec({source!r}, module.__dict__)\n"
        "    return getattr(module, name)\n"
        "later.__getattr__ = read\n"
    )
