"""Reading trees and files from A's own objects, many at once and never a whole large file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sandbox_task.workspace.git import Git


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a tree."""

    mode: str
    oid: str
    path: str

    @property
    def is_file(self) -> bool:
        return self.mode.startswith("100")

    @property
    def is_link(self) -> bool:
        return self.mode == "120000"

    @property
    def is_submodule(self) -> bool:
        return self.mode == "160000"


@dataclass(frozen=True, slots=True)
class Difference:
    """One path that two trees do not have in common; a side where it is not there has the mode 000000."""

    before: Entry
    after: Entry
    status: str


def list_entries(git: Git, tree: str) -> list[Entry]:
    raw = git.run("ls-tree", "-r", "-z", "--full-tree", tree).decode(errors="surrogateescape")
    rows = (row.partition("\t") for row in raw.split("\0") if row)
    return [Entry(head[:6], head.rpartition(" ")[2], path) for head, _, path in rows]


def list_differences(git: Git, before: str, after: str) -> list[Difference]:
    raw = git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--ignore-submodules=none", before, after)
    fields = raw.decode(errors="surrogateescape").split("\0")
    found = []
    for head, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old, new, status = head.removeprefix(":").split(" ")
        found.append(Difference(Entry(old_mode, old, path), Entry(new_mode, new, path), status[0]))
    return found


def blob_sizes(git: Git, oids: Sequence[str]) -> list[int]:
    questions = "".join(f"{oid}\n" for oid in oids).encode()
    raw = git.run("cat-file", "--batch-check=%(objectsize)", "--buffer", stdin=questions)
    return [int(line) for line in raw.splitlines()]


def read_blobs(git: Git, oids: Sequence[str]) -> Iterator[bytes]:
    """One after the other, so that only one is in memory. Each must be there."""
    questions = "".join(f"{oid}\n" for oid in oids).encode()
    with git.stream("cat-file", "--batch=%(objectsize)", "--buffer", stdin=questions) as answers:
        for _ in oids:
            size = int(answers.readline())
            yield answers.read(size + 1)[:size]
