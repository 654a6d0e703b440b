"""Where a command works, and whether a path that it names is all of the run's work."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, replace

_ELSEWHERE = "/\0"  # a directory that only running it would tell
_LONGEST_PATH = 4096  # of Linux
_EVERYTHING_IN = re.compile(r"(?:^|(?<=/))(?:\*|\.\*|\.\[!\.\]\*)$")


@dataclass(frozen=True)
class Place:
    """`workspace` is absolute; `directory` is where the command works now."""

    workspace: str
    directory: str
    home: str = "/home"

    @classmethod
    def at(cls, workspace: str, directory: str = ".") -> Place:
        return cls(workspace, workspace).moved(directory)

    def moved(self, path: str) -> Place:
        return replace(self, directory=self._absolute(path))

    def is_in_work(self) -> bool:
        return self.directory == self.workspace or self.directory.startswith(f"{self.workspace}/")

    def is_whole_work(self, path: str) -> bool:
        """The workspace, everything in it, its git directory, what is above it, or the home directory."""
        absolute = self._absolute(_EVERYTHING_IN.sub("", path))
        above = self.workspace.startswith(f"{absolute.rstrip('/')}/")
        return bool(path) and (above or absolute in {self.workspace, f"{self.workspace}/.git", self.home})

    def _absolute(self, path: str) -> str:
        path = re.sub(r"^\$(?:\{PWD\}|PWD\b)", self.directory, path)
        path = re.sub(r"^(?:~|\$\{HOME\}|\$HOME\b)(?=/|$)", self.home, path)
        if "$" in path or "\0" in path or len(path) + len(self.directory) > _LONGEST_PATH:
            return _ELSEWHERE
        return posixpath.normpath(posixpath.join(self.directory, path)).replace("//", "/")
