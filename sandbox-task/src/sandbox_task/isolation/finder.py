"""How B's interpreter finds the modules that are carried to it (see `carrying`). Run there ahead of everything else."""

from __future__ import annotations

import marshal
import posix  # the part of `os` that need not be read
import sys
from _frozen_importlib import ModuleSpec  # which is there already; `importlib.machinery` would have to be read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


class Carried:
    """Modules by name, as text or compiled. None is touched before it is imported: not all are needed everywhere."""

    def __init__(self, size: int) -> None:
        packed = b""
        while len(packed) < size:
            packed += posix.read(0, size - len(packed)) or sys.exit("the supervisor is gone")
        self.modules: dict[str, str | bytes] = marshal.loads(packed)  # noqa: S302 - of A's making

    def be_found(self) -> None:
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        is_package = any(module.startswith(name + ".") for module in self.modules)
        is_ours = is_package or name in self.modules
        return ModuleSpec(name, self, is_package=is_package) if is_ours else None  # type: ignore[arg-type] # all it needs

    def create_module(self, _spec: ModuleSpec) -> None:
        """As usual."""

    def exec_module(self, module: ModuleType) -> None:
        code = self.modules.get(module.__name__, "")
        exec(marshal.loads(code) if isinstance(code, bytes) else code, module.__dict__)  # noqa: S102, S302 - likewise
