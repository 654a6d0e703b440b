"""`paths`: which part of the repository is put into the workspace. Files at its root always are."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterable

_SPECIAL = re.compile(r"([\\*?\[\]!#\s])")


@dataclass(frozen=True)
class Narrowing:
    """No paths: nothing is left out."""

    paths: tuple[str, ...] = ()

    @classmethod
    def to(cls, paths: Iterable[str]) -> Narrowing:
        """Raises RunError for a path that leads out of the repository."""
        plain = tuple(dict.fromkeys(posixpath.normpath(path) for path in paths))
        if wrong := [path for path in plain if path.startswith(("/", "../")) or path == ".." or "\n" in path]:
            raise RunError("validation_error", f"{wrong[0]!r} in `paths` is no path inside the repository.")
        return cls() if "." in plain else cls(plain)

    def __bool__(self) -> bool:
        return bool(self.paths)

    def holds(self, path: str) -> bool:
        return not self.paths or "/" not in path or any(f"{path}/".startswith(f"{part}/") for part in self.paths)

    def patterns(self) -> str:
        """For git's sparse checkout: the files at the root, then each path with all that is below it."""
        return "".join(["/*\n!/*/\n", *(f"/{_SPECIAL.sub(r'\\\1', path)}\n" for path in self.paths)])

    def pathspecs(self) -> list[str]:
        if not self.paths:
            return [":/"]
        return [":(top,glob)*", *(f":(top,literal){path}" for path in self.paths)]
