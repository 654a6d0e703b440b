"""A tree that A knows by heart, so that other contents of the same files make the next one without starting git.

Starting it twice would be most of what a step costs that changes a file.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from sandbox_task.workspace.git import Git

_TREE, _FILE, _PROGRAM = b"40000", b"100644", b"100755"
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotSoEasy(Exception):
    """Git has to look at the files."""


@dataclass
class KnownTree:
    """Each directory's entries in git's own order, with mode and hash."""

    tree: str
    _objects: Path
    _directories: dict[bytes, dict[bytes, tuple[bytes, bytes]]]

    @classmethod
    def read(cls, git: Git, tree: str) -> Self:
        directories: dict[bytes, dict[bytes, tuple[bytes, bytes]]] = {b"": {}}
        for row in git.run("ls-tree", "-r", "-t", "-z", "--full-tree", tree).split(b"\0")[:-1]:
            head, _, path = row.partition(b"\t")
            mode, kind, oid = head.split(b" ")
            if kind == b"tree":
                directories[path] = {}
            parent, _, name = path.rpartition(b"/")
            directories[parent][name] = (mode.lstrip(b"0"), bytes.fromhex(oid.decode()))
        return cls(tree, git.git_dir / "objects", directories)

    def take(self, root: Path, files: Iterable[str]) -> str:
        """The tree in which these have the contents that they have now. There must be no other files than before.

        Raises NotSoEasy, and OSError if it can't be written; then it is of no more use.
        """
        paths = [os.fsencode(file) for file in files]
        if any(path.rpartition(b"/")[2] == b".gitignore" for path in paths):
            raise NotSoEasy  # what it says is about other files
        changed = {path: _contents(root, path) for path in paths if self._holds(path)}
        touched = set()
        for path, (mode, data) in changed.items():
            parent, _, name = path.rpartition(b"/")
            self._directories[parent][name] = (mode, self._write(b"blob", data))
            touched |= _above(path)
        for directory in sorted(touched, key=len, reverse=True):
            self._write_directory(directory)
        return self.tree

    def _holds(self, path: bytes) -> bool:
        """Ignored files are none of it. A link always says the same: another one would be another file."""
        parent, _, name = path.rpartition(b"/")
        return self._directories.get(parent, {}).get(name, (b"",))[0] in (_FILE, _PROGRAM)

    def _write_directory(self, directory: bytes) -> None:
        entries = self._directories[directory].items()
        oid = self._write(b"tree", b"".join(b"%s %s\0%s" % (mode, name, oid) for name, (mode, oid) in entries))
        if not directory:
            self.tree = oid.hex()
            return
        parent, _, name = directory.rpartition(b"/")
        self._directories[parent][name] = (_TREE, oid)

    def _write(self, kind: bytes, data: bytes) -> bytes:
        """As git keeps it: one file for each object, named by its hash."""
        whole = b"%s %d\0%s" % (kind, len(data), data)
        oid = hashlib.sha1(whole, usedforsecurity=False)
        place = self._objects / oid.hexdigest()[:2] / oid.hexdigest()[2:]
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            half = place.with_name(f"tmp_obj_{place.name}")
            half.write_bytes(zlib.compress(whole, 1))
            half.chmod(0o444)
            half.rename(place)
        return oid.digest()


def _above(path: bytes) -> set[bytes]:
    """The directories that it is in; the first is named by nothing."""
    parts = path.split(b"/")[:-1]
    return {b"/".join(parts[:count]) for count in range(len(parts) + 1)}


def _contents(root: Path, path: bytes) -> tuple[bytes, bytes]:
    """Mode and bytes of a file."""
    try:
        with os.fdopen(os.open(root / os.fsdecode(path), _OPEN), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > limits.FOOTPRINT_FILE_BYTES:
                raise NotSoEasy
            return _PROGRAM if status.st_mode & stat.S_IXUSR else _FILE, file.read()
    except OSError as error:
        raise NotSoEasy from error
