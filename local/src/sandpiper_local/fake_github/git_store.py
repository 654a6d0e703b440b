"""A bare repository on the disk, through git's own plumbing."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sandpiper_local.front_door.shares import git_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ZERO = "0" * 40


class GitFailed(Exception):
    """What git said."""


@dataclass(frozen=True)
class Person:
    name: str
    email: str
    date: str  # ISO 8601


@dataclass(frozen=True)
class CommitData:
    sha: str
    tree: str
    parents: list[str]
    author: Person
    committer: Person
    message: str


@dataclass(frozen=True)
class TreeEntry:
    mode: str
    type: str
    sha: str
    path: str
    size: int | None


@dataclass(frozen=True)
class GitStore:
    path: Path

    def create(self, branch: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._git("init", "--quiet", "--bare", f"--initial-branch={branch}", str(self.path), at=self.path.parent)

    def copy_from(self, other: Path) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._git("clone", "--quiet", "--bare", "--no-hardlinks", str(other), str(self.path), at=self.path.parent)

    # ---- refs

    def refs(self, prefix: str = "refs/heads/") -> dict[str, str]:
        lines = self._git("for-each-ref", "--format=%(objectname) %(refname)", prefix).decode().splitlines()
        return {name: sha for sha, _, name in (line.partition(" ") for line in lines)}

    def resolve(self, revision: str, kind: str = "commit") -> str | None:
        try:
            return (
                self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{{kind}}}")
                .decode()
                .strip()
            )
        except GitFailed:
            return None

    def update_ref(self, ref: str, new: str, old: str | None = None) -> None:
        """Raises GitFailed if `old` is given and the ref is elsewhere by now."""
        self._git("update-ref", ref, new, *([old] if old is not None else []))

    def delete_ref(self, ref: str) -> None:
        self._git("update-ref", "-d", ref)

    def fetch(self, other: GitStore, source: str, target: str) -> None:
        self._git("fetch", "--quiet", "--no-tags", str(other.path), f"+{source}:{target}")

    # ---- objects

    def kind_of(self, sha: str) -> str | None:
        try:
            return self._git("cat-file", "-t", sha).decode().strip()
        except GitFailed:
            return None

    def write_blob(self, content: bytes) -> str:
        return self._git("hash-object", "-w", "--stdin", stdin=content).decode().strip()

    def read_blob(self, sha: str) -> bytes:
        return self._git("cat-file", "blob", sha)

    def write_tree(self, entries: Sequence[tuple[str, str, str]], base: str | None) -> str:
        """`entries`: (mode, sha, path); ZERO as sha takes the path away."""
        with tempfile.TemporaryDirectory() as directory:
            index = {"GIT_INDEX_FILE": str(Path(directory) / "index")}
            if base:
                self._git("read-tree", base, environment=index)
            lines = "".join(f"{'0' if sha == ZERO else mode} {sha}\t{path}\0" for mode, sha, path in entries)
            self._git("update-index", "-z", "--index-info", stdin=lines.encode(), environment=index)
            return self._git("write-tree", environment=index).decode().strip()

    def read_tree(self, tree: str, *, recursive: bool = False, path: str = "") -> list[TreeEntry]:
        words = ["ls-tree", "-z", "-l", *(["-r", "-t"] if recursive else []), tree, *(["--", path] if path else [])]
        return [_tree_entry(line) for line in self._git(*words).decode().split("\0") if line]

    def blob_at(self, commit: str, path: str) -> str | None:
        found = self.read_tree(commit, path=path)
        return found[0].sha if found else None

    def write_commit(self, tree: str, parents: Sequence[str], message: str, author: Person, committer: Person) -> str:
        words = [word for parent in parents for word in ("-p", parent)]
        people = {
            "GIT_AUTHOR_NAME": author.name, "GIT_AUTHOR_EMAIL": author.email, "GIT_AUTHOR_DATE": author.date,
            "GIT_COMMITTER_NAME": committer.name, "GIT_COMMITTER_EMAIL": committer.email,
            "GIT_COMMITTER_DATE": committer.date,
        }  # fmt: skip
        return self._git("commit-tree", tree, *words, stdin=message.encode(), environment=people).decode().strip()

    def read_commit(self, sha: str) -> CommitData:
        form = "%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B"
        fields = self._git("show", "--no-patch", f"--format={form}", sha).decode(errors="replace").split("\0")
        return CommitData(
            sha=fields[0], tree=fields[1], parents=fields[2].split(),
            author=Person(*fields[3:6]), committer=Person(*fields[6:9]), message=fields[9].rstrip("\n"),
        )  # fmt: skip

    # ---- history

    def is_ancestor(self, older: str, newer: str) -> bool:
        return self.merge_base(older, newer) == older

    def merge_base(self, one: str, other: str) -> str | None:
        try:
            return self._git("merge-base", one, other).decode().strip()
        except GitFailed:
            return None

    def commits_between(self, base: str, head: str) -> list[str]:
        """Oldest first."""
        return self._git("rev-list", "--reverse", f"{base}..{head}").decode().split()

    def log(self, start: str, limit: int) -> list[str]:
        return self._git("rev-list", f"--max-count={limit}", start).decode().split()

    def diff(self, base: str, head: str) -> str:
        return self._git("diff", *_DIFF, base, head).decode(errors="replace")

    def changes(self, base: str, head: str) -> list[tuple[str, str, str | None]]:
        """(status letter, path, path before)."""
        words = iter(self._git("diff", *_DIFF, "--name-status", "-z", base, head).decode().split("\0")[:-1])
        found: list[tuple[str, str, str | None]] = []
        for letter in words:
            before = next(words) if letter[0] in "RC" else None
            found.append((letter[0], next(words), before))
        return found

    def patch_of(self, base: str, head: str, paths: Sequence[str]) -> str:
        return self._git("diff", *_DIFF, base, head, "--", *paths).decode(errors="replace")

    def merged_tree(self, base: str, head: str) -> str | None:
        """The tree of a merge; None if it has conflicts."""
        try:
            return self._git("merge-tree", "--write-tree", base, head).decode().split("\n", 1)[0]
        except GitFailed:
            return None

    def _git(
        self,
        *words: str,
        stdin: bytes = b"",
        at: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> bytes:
        done = subprocess.run(
            ["git", *words],
            cwd=at or self.path, env=git_environment(self.path) | dict(environment or {}) | {"LC_ALL": "C.UTF-8"},
            input=stdin, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise GitFailed(done.stderr.decode(errors="replace").strip() or f"git {words[0]} failed")
        return done.stdout


_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "-M")


def _tree_entry(line: str) -> TreeEntry:
    facts, _, path = line.partition("\t")
    mode, kind, sha, size = facts.split()
    return TreeEntry(mode, kind, sha, path, int(size) if size.isdigit() else None)
