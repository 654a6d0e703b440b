"""The repository of a run: cloned by A, copied to B, taken back from B's files, committed and pushed by A."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from sandbox_task.workspace import complaints, crossing, diffing, fetching, objects, saving
from sandbox_task.workspace.git import Git, GitError
from sandbox_task.workspace.names import printable
from sandbox_task.workspace.narrowing import Narrowing
from sandbox_task.workspace.remote import Start, branch_commit, find_start
from sandbox_task.workspace.surprises import find_surprises
from sandbox_task.workspace.taking import Taking
from sandbox_task.workspace.worker_git import write_worker_git
from sandpiper import limits
from sandpiper.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from sandbox_task.stopping import Stop
    from sandbox_task.workspace.git import MovedTo, Token
    from sandbox_task.workspace.objects import Entry
    from sandpiper.models.run import DiffStat
    from sandpiper.models.spec import RunSpec

_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
# What tools leave behind, when the repository does not say so itself. Tracked files are taken all the same.
_LITTER = "__pycache__/\n*.pyc\n.pytest_cache/\n.mypy_cache/\n.ruff_cache/\nnode_modules/\n.venv/\n.DS_Store\n"
# Every byte stays as it is, on the way in and on the way back, whatever the repository's own attributes ask for.
_BYTE_FOR_BYTE = "* -text -filter -ident !eol !working-tree-encoding\n"


@dataclass(frozen=True)
class Change:
    """One path that differs from the base: A(dded), M(odified), D(eleted), T(ype)."""

    status: str
    path: str


@dataclass
class Repository:
    git: Git
    rooms: Rooms
    spec: RunSpec
    start: Start = field(default_factory=lambda: Start(None, None))
    base_commit: str | None = None
    base_tree: str = _EMPTY_TREE
    settled_tree: str = _EMPTY_TREE  # the base's, or that of the branch which a continued one belongs to
    setup_tree: str | None = None  # the base's with what the repository's own setup added or changed
    narrowing: Narrowing = field(default_factory=Narrowing)
    has_whole_history: bool = True  # with contents; commits are always all there
    warnings: list[str] = field(default_factory=list)
    tip: str | None = None  # what this run has pushed before; its next commit goes on top

    @classmethod
    def clone(
        cls,
        spec: RunSpec,
        rooms: Rooms,
        *,
        token: Token,
        at: str | None = None,
        stop: Stop | None = None,
        moved_to: MovedTo = None,
    ) -> Repository:
        """`at` is the base commit of an earlier attempt, to start from again. Raises RunError in words, Stopped."""
        git = Git(rooms.private / "git", rooms.workspace, url=spec.repo_url, token=token, stop=stop, moved_to=moved_to)
        git.run("init", "--quiet", "--initial-branch=main", "--template=")
        (git.git_dir / "info").mkdir(exist_ok=True)
        (git.git_dir / "info" / "exclude").write_text(_LITTER, encoding="utf-8")
        (git.git_dir / "info" / "attributes").write_text(_BYTE_FOR_BYTE, encoding="utf-8")
        repository = cls(git, rooms, spec, narrowing=Narrowing.to(spec.paths))
        if spec.repo_url:
            git.run("remote", "add", "--", "origin", spec.repo_url)
            repository.start = find_start(git, spec)
            repository._fetch(at)
            repository.warnings = find_surprises(repository.base_entries, repository.narrowing)
        return repository

    @cached_property
    def base_entries(self) -> list[Entry]:
        return self.entries(self.base_tree)

    @property
    def start_tree(self) -> str:
        """What the work began with."""
        return self.setup_tree or self.base_tree

    @property
    def name(self) -> str:
        return self.spec.repo or str(self.spec.repo_url)

    def deliver(self, wall: Wall, *, remote: str = "") -> None:
        """Put an ordinary `.git` into the workspace, from which B checks out the base by itself. `remote` configures
        where B's git finds what did not come."""
        if self.base_commit:
            self._fetch_contents(self.base_commit)
        branch = self.start.name if self.start.ref and self.start.ref.startswith("refs/heads/") else None
        staging = self.rooms.private / "staging"
        staging.mkdir()
        write_worker_git(
            self.git,
            staging / ".git",
            branch=branch or "main",
            commit=self.base_commit,
            narrowing=self.narrowing,
            remote=remote,
        )
        crossing.unpack(staging, wall)
        shutil.rmtree(staging)
        if self.base_commit:
            self._check_out(wall)
            self.git.run("read-tree", self.base_tree)

    def adopt(self) -> None:
        """The workspace is filled already, as an earlier sandbox has left it."""
        if self.base_commit:
            self._fetch_contents(self.base_commit)
            self.git.run("read-tree", self.base_tree)

    @cached_property
    def _taking(self) -> Taking:
        has_submodules = any(entry.is_submodule for entry in self.base_entries)
        return Taking(self.git, self.base_tree, self.narrowing, has_submodules)

    def take_tree(self, wall: Wall, *, refresh: bool = True) -> str:
        """The tree of the files as they are now. Nothing of B may move meanwhile. See `Taking.take`."""
        return self._taking.take(wall, refresh=refresh)

    def take_contents(self, last: str, files: tuple[str, ...] | None) -> str | None:
        """The same where there are no other files than in the last tree; None if it is not so easy. See `Taking`."""
        return self._taking.take_contents(last, files)

    def save_tree(self, tree: str, path: Path, *, after: str | None = None) -> str:
        """What this tree has more than the base commit, or than the one that was saved as `after`, as one small file.

        Returns by which name it was saved.
        """
        known = after or self.base_commit
        if after is None and self.setup_tree:
            after = saving.name_tree(self.git, self.setup_tree, after=self.base_commit)
        commit = saving.name_tree(self.git, tree, after=after or self.base_commit)
        saving.save(self.git, commit, path, known=known)
        return commit

    def load_trees(self, paths: Iterable[Path], tree: str) -> None:
        """Read back into a clone of the same base commit. Raises RunError unless all of the tree came."""
        for path in paths:
            saving.load(self.git, path)
        saving.require(self.git, tree, base=self.base_commit)

    def replace_file(self, tree: str, path: str, content: bytes) -> str:
        """The same tree with one file changed."""
        blob = self.git.text("hash-object", "-w", "--stdin", stdin=content)
        scratch = self._scratch_index()
        self.git.run("read-tree", tree, extra_env=scratch)
        self.git.run("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", extra_env=scratch)
        return self.git.text("write-tree", extra_env=scratch)

    def own_work(self, tree: str) -> str:
        """The same tree, but what only the setup has changed is as in the base: it is nobody's work."""
        of_setup = objects.list_differences(self.git, self.base_tree, self.start_tree)
        touched = {change.path for change in self.changes(self.start_tree, tree)} if of_setup else set()
        left = [each.before for each in of_setup if each.before.path not in touched]
        if not left:
            return tree
        rows = "".join(f"{entry.mode} {entry.oid}\t{entry.path}\0" for entry in left)
        scratch = self._scratch_index()
        self.git.run("read-tree", tree, extra_env=scratch)
        self.git.run(
            "update-index", "--replace", "-z", "--index-info",
            stdin=rows.encode(errors="surrogateescape"), extra_env=scratch,
        )  # fmt: skip
        return self.git.text("write-tree", extra_env=scratch)

    def restore(self, wall: Wall, *, present: str, wanted: str) -> None:
        """Change the tracked files in the workspace from one tree to another; what git ignores stays."""
        changes = self.changes(present, wanted)
        if not changes:
            return
        crossing.remove([change.path for change in changes], wall, self.rooms.private)
        staging, scratch = self.rooms.private / "staging", self._scratch_index()
        staging.mkdir()
        self.git.run("read-tree", wanted, extra_env=scratch)
        kept = [change.path.encode(errors="surrogateescape") for change in changes if change.status != "D"]
        self.git.run(
            "checkout-index", "--force", "-z", "--stdin",
            stdin=b"".join(path + b"\0" for path in kept), work_tree=staging, extra_env=scratch,
        )  # fmt: skip
        crossing.unpack(staging, wall)
        shutil.rmtree(staging)

    def changes(self, before: str, after: str) -> list[Change]:
        raw = self.git.run("diff-tree", "-r", "-z", "--no-renames", "--name-status", before, after)
        fields = raw.decode(errors="surrogateescape").split("\0")
        return [Change(status, path) for status, path in zip(fields[::2], fields[1::2], strict=False) if status]

    def stat(self, tree: str) -> DiffStat:
        return diffing.stat(self.git, self.base_tree, tree)

    def write_diff(self, tree: str, path: Path) -> None:
        """New, deleted, renamed, binary and mode changes against the base. Of huge files only that they differ."""
        diffing.write(self.git, self.base_tree, tree, path)

    def entries(self, tree: str) -> list[Entry]:
        return objects.list_entries(self.git, tree)

    def paths(self, tree: str) -> list[str]:
        return [entry.path for entry in self.entries(tree)]

    def sizes(self, oids: Sequence[str]) -> list[int]:
        return objects.blob_sizes(self.git, oids)

    def blobs(self, oids: Sequence[str]) -> Iterator[bytes]:
        return objects.read_blobs(self.git, oids)

    def show(self, tree: str, path: str, *, at_most: int = limits.MAX_SHOWN_BYTES) -> bytes | None:
        """One file of a tree, from A's objects; None if it is not there. Raises RunError if it is too large."""
        try:
            oid = self.git.text("rev-parse", "--verify", "--quiet", f"{tree}:{path}")
            size = int(self.git.text("cat-file", "-s", oid))
        except GitError:
            return None
        if size > at_most:
            complaint = f"{printable(path)} in the repository is too large to be read: {size} bytes, at most {at_most}."
            raise RunError("repository_error", complaint)
        return self.git.run("cat-file", "blob", oid)

    def commit(
        self,
        tree: str,
        message: str,
        *,
        author: tuple[str, str],
        at: datetime | None = None,
        parent: str | None = None,
    ) -> str:
        """The same commit for the same work at the same time, however often it is made."""
        name, email = author
        date = f"@{int((at or datetime.now(UTC)).timestamp())} +0000"
        identity = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", name), ("EMAIL", email), ("DATE", date))
        }
        below = parent or self.tip or self.base_commit
        parents = ("-p", below) if below else ()
        sha = self.git.run("commit-tree", tree, *parents, stdin=message.encode(), extra_env=identity)
        return sha.decode().strip()

    def push(self, commit: str, branch: str) -> None:
        """An explicit commit to an explicit URL, never forced. B must be dead. Raises RunError in words."""
        url = str(self.spec.repo_url)
        try:
            target = f"{commit}:refs/heads/{branch}"
            self.git.reach("push", "--no-verify", "--", url, target, seconds=limits.GIT_TRANSFER_SECONDS)
        except GitError as error:
            raise complaints.while_pushing(error, self.name, branch) from error

    def move_to(self, commit: str) -> None:
        """What was the base is no more: others have gone on from it."""
        self.base_commit = commit
        self.base_tree, self.setup_tree = self.tree_of(commit), None

    def tree_of(self, commit: str) -> str:
        return self.git.text("rev-parse", "--verify", f"{commit}^{{tree}}")

    def has_been_pushed(self, commit: str, branch: str) -> bool:
        """Raises RunError in words."""
        return branch_commit(self.git, str(self.spec.repo_url), branch, self.name) == commit

    def _fetch(self, at: str | None) -> None:
        try:
            if self.start.ref:
                self.has_whole_history = fetching.fetch_base(self.git, self.start.ref)
            if self.start.settled:
                fetching.fetch_settled(self.git, self.start.settled)
            if at:
                self._fetch_again(at)
        except GitError as error:
            raise complaints.while_reading(error, self.name) from error
        if self.start.ref or at:
            self.base_commit = self.git.text("rev-parse", "--verify", f"{fetching.BASE}^{{commit}}")
            self.base_tree = self.tree_of(self.base_commit)
            self.settled_tree = self.tree_of(fetching.SETTLED if self.start.settled else self.base_commit)

    def _fetch_again(self, at: str) -> None:
        try:
            fetching.fetch_commit(self.git, at)
        except GitError as error:
            gone = f"The repository {self.name} no longer has the commit {at} that this run started from."
            raise RunError("repository_error", gone) from error

    def _fetch_contents(self, commit: str) -> None:
        here = [entry.oid for entry in self.base_entries if self.narrowing.holds(entry.path)]
        try:
            fetching.fetch_contents(self.git, commit, here)
        except GitError as error:
            raise complaints.while_reading(error, self.name) from error
        if not fetching.fetch_recent(self.git, commit, self.narrowing):
            self.has_whole_history = False

    def _check_out(self, wall: Wall) -> None:
        said = bytearray()
        done = wall.run("git reset --quiet --hard", timeout=limits.GIT_TRANSFER_SECONDS, on_output=said.extend)
        if not done.succeeded:
            complaint = GitError("reset", said.decode(errors="replace").strip())
            raise complaints.while_checking_out(complaint, self.name)

    def _scratch_index(self) -> dict[str, str]:
        """The main index knows the workspace's files; what is done beside must not make it forget them."""
        return {"GIT_INDEX_FILE": str(self.git.git_dir / "scratch-index")}
