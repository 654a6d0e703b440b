"""Instructions that lie deeper in the repository, told when the work comes to them."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from sandbox_task.agent.context import excerpts
from sandbox_task.agent.context.base_files import BaseFiles
from sandbox_task.agent.context.kinds import holds_instructions, instruction_paths
from sandbox_task.agent.context.marking import file_block
from sandbox_task.workspace.names import printable
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox_task.workspace.repository import Repository


class NestedInstructions:
    """`shown` are the paths (as a Context or this class names them) that the model has been told already.

    Reads the base commit only: what the work itself writes into an AGENTS.md instructs nobody.
    """

    def __init__(self, repository: Repository, *, root: str, shown: Iterable[str] = ()) -> None:
        self._files = BaseFiles(repository)
        self._instructions = [path for path in self._files.paths if holds_instructions(path)]
        self._root = root
        self.shown = list(shown)

    def for_path(self, path: str) -> str | None:
        """To be added to the result of a tool that touched `path` (relative, or below `root`); None: nothing new."""
        inside = posixpath.relpath(posixpath.join(self._root, path), self._root)
        new = instruction_paths(self._instructions, towards=[inside])
        blocks = [block for each in new if (block := self._tell(each))]
        return "\n".join(blocks) or None

    def _tell(self, path: str) -> str | None:
        entry = self._files.resolve(path)
        if entry is None or printable(entry.path) in self.shown:
            return None
        self.shown.append(printable(entry.path))
        text = self._files.texts([entry]).get(entry.oid, "")
        excerpt = excerpts.beginning(text, tokens=limits.CONTEXT_INSTRUCTION_TOKENS)
        return file_block(printable(entry.path), excerpt.text, part=excerpt.part) if excerpt.text.strip() else None
