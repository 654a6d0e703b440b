"""The files of the base commit that are in the workspace, as text."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox_task.workspace.objects import Entry
    from sandbox_task.workspace.repository import Repository


class BaseFiles:
    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self.entries = [entry for entry in repository.base_entries if repository.narrowing.holds(entry.path)]
        self._by_path = {entry.path: entry for entry in self.entries}

    @property
    def paths(self) -> list[str]:
        return [entry.path for entry in self.entries]

    def resolve(self, path: str) -> Entry | None:
        """A file, or the file that a link inside of the repository leads to."""
        entry = self._by_path.get(path)
        if entry is not None and entry.is_link:
            target = b"".join(self._repository.blobs([entry.oid])).decode(errors="surrogateescape")
            entry = self._by_path.get(posixpath.normpath(posixpath.join(posixpath.dirname(path), target)))
        return entry if entry is not None and entry.is_file else None

    def texts(self, entries: Iterable[Entry]) -> dict[str, str]:
        """By object id; without what is binary or too large to look into."""
        wanted = list(dict.fromkeys(entry.oid for entry in entries))
        sizes = self._repository.sizes(wanted) if wanted else []
        readable = [oid for oid, size in zip(wanted, sizes, strict=True) if size <= limits.CONTEXT_READ_BYTES]
        found = zip(readable, self._repository.blobs(readable), strict=True)
        return {oid: _decoded(data) for oid, data in found if b"\0" not in data}


def _decoded(data: bytes) -> str:
    return data.decode(errors="replace").replace("\r\n", "\n")
