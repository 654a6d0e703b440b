"""The repository of a run: cloned by A, copied to B, taken back from B's files, committed and pushed by A."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_task.workspace import complaints
from sandbox_task.workspace.git import Git, GitError
from sandbox_task.workspace.remote import Start, find_start
from sandpiper import limits
from sandpiper.errors import RunError
from sandpiper.models.run import DiffStat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.isolation.wall import Wall
    from sandpiper.models.spec import RunSpec

_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
# What tools leave behind, when the repository does not say so itself. Tracked files are taken all the same.
_LITTER = "__pycache__/\n*.pyc\n.pytest_cache/\n.mypy_cache/\n.ruff_cache/\nnode_modules/\n.venv/\n.DS_Store\n"
_WORKER_CONFIG = """[core]
\trepositoryformatversion = 0
\tbare = false
[user]
\tname = Sandpiper
\temail = sandpiper@sandbox.invalid
"""


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

    @classmethod
    def clone(cls, spec: RunSpec, rooms: Rooms, *, token: str | None) -> Repository:
        """Raises RunError in words."""
        git = Git(rooms.private / "git", rooms.workspace, url=spec.repo_url, token=token)
        git.run("init", "--quiet", "--initial-branch=main")
        (git.git_dir / "info").mkdir(exist_ok=True)
        (git.git_dir / "info" / "exclude").write_text(_LITTER, encoding="utf-8")
        repository = cls(git, rooms, spec)
        if spec.repo_url:
            git.run("remote", "add", "--", "origin", spec.repo_url)
            repository.start = find_start(git, spec)
            repository._fetch()
        return repository

    def deliver(self, wall: Wall) -> None:
        """Put the base's files and an ordinary `.git` into the workspace, written by B itself."""
        staging = self.rooms.private / "staging"
        staging.mkdir()
        if self.base_commit:
            self._read("checkout", "--quiet", "--force", "--detach", self.base_commit, work_tree=staging)
        self._copy_git_dir(staging / ".git")
        _unpack(staging, [], wall)
        shutil.rmtree(staging)

    def take_tree(self, wall: Wall) -> str:
        """The tree of the files as they are now. Nothing of B may be alive."""
        wall.run("chmod -R u+rX,g+rX .", timeout=limits.GIT_SECONDS, on_output=_ignore)
        self._refuse_nested_repositories(wall)
        self.git.run("add", "--all", "--", ":/", work_tree=self.rooms.workspace)
        tree = self.git.text("write-tree")
        self._refuse_new_gitlinks(tree)
        return tree

    def replace_file(self, tree: str, path: str, content: bytes) -> str:
        """The same tree with one file changed."""
        blob = self.git.text("hash-object", "-w", "--stdin", stdin=content)
        self.git.run("read-tree", tree)
        self.git.run("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        return self.git.text("write-tree")

    def restore(self, wall: Wall, *, present: str, wanted: str) -> None:
        """Change the tracked files in the workspace from one tree to another; what git ignores stays."""
        changes = self.changes(present, wanted)
        gone = [change.path for change in changes if change.status == "D"]
        if gone:
            _remove(gone, wall, self.rooms.private)
        kept = [change.path for change in changes if change.status != "D"]
        if kept:
            staging = self.rooms.private / "staging"
            staging.mkdir()
            self._read("read-tree", wanted, work_tree=staging)
            paths = b"".join(path.encode(errors="surrogateescape") + b"\0" for path in kept)
            self.git.run("checkout-index", "--force", "-z", "--stdin", stdin=paths, work_tree=staging)
            _unpack(staging, kept, wall)
            shutil.rmtree(staging)

    def changes(self, before: str, after: str) -> list[Change]:
        raw = self.git.run("diff-tree", "-r", "-z", "--no-renames", "--name-status", before, after)
        fields = raw.decode(errors="surrogateescape").split("\0")
        return [Change(status, path) for status, path in zip(fields[::2], fields[1::2], strict=False) if status]

    def stat(self, tree: str) -> DiffStat:
        raw = self.git.run("diff-tree", "-r", "-z", "--no-renames", "--numstat", self.base_tree, tree)
        rows = [row.split(b"\t") for row in raw.split(b"\0") if row]
        counts = [(int(added), int(removed)) for added, removed, *_ in rows if added != b"-"]
        return DiffStat(files=len(rows), insertions=sum(a for a, _ in counts), deletions=sum(d for _, d in counts))

    def write_diff(self, tree: str, path: Path) -> None:
        """New, deleted, renamed, binary and mode changes against the base."""
        options = ("--no-ext-diff", "--no-textconv", "--binary", "--find-renames", "--ignore-submodules")
        with path.open("wb") as file:
            self.git.run("diff", *options, self.base_tree, tree, stdout=file)

    def paths(self, tree: str) -> list[str]:
        raw = self.git.run("ls-tree", "-r", "-z", "--name-only", tree)
        return [path for path in raw.decode(errors="surrogateescape").split("\0") if path]

    def show(self, tree: str, path: str) -> bytes | None:
        """One file of a tree, from A's objects; None if it is not there."""
        try:
            return self.git.run("cat-file", "blob", f"{tree}:{path}")
        except GitError:
            return None

    def commit(self, tree: str, message: str, *, author: tuple[str, str]) -> str:
        name, email = author
        identity = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", name), ("EMAIL", email))
        }
        parents = ("-p", self.base_commit) if self.base_commit else ()
        sha = self.git.run("commit-tree", tree, *parents, stdin=message.encode(), extra_env=identity)
        return sha.decode().strip()

    def push(self, commit: str, branch: str) -> None:
        """An explicit commit to an explicit URL, never forced. B must be dead. Raises RunError in words."""
        url = str(self.spec.repo_url)
        try:
            target = f"{commit}:refs/heads/{branch}"
            self.git.run("push", "--no-verify", "--", url, target, seconds=limits.GIT_TRANSFER_SECONDS)
        except GitError as error:
            raise complaints.while_pushing(error, self.spec.repo or url, branch) from error

    def _fetch(self) -> None:
        if self.start.ref is None:
            return
        self._read(
            "fetch",
            "--quiet",
            "--no-tags",
            "--filter=blob:none",
            "--",
            "origin",
            f"+{self.start.ref}:refs/sandpiper/base",
        )
        self.base_commit = self.git.text("rev-parse", "--verify", "refs/sandpiper/base^{commit}")
        self.base_tree = self.git.text("rev-parse", "--verify", f"{self.base_commit}^{{tree}}")

    def _read(self, *arguments: str, work_tree: Path | None = None) -> None:
        """Any command that may have to ask the remote."""
        try:
            self.git.run(*arguments, seconds=limits.GIT_TRANSFER_SECONDS, work_tree=work_tree)
        except GitError as error:
            raise complaints.while_reading(error, self.spec.repo or str(self.spec.repo_url)) from error

    def _copy_git_dir(self, target: Path) -> None:
        shutil.copytree(
            self.git.git_dir, target, ignore=shutil.ignore_patterns("config", "hooks", "FETCH_HEAD", "sandpiper")
        )
        (target / "config").write_text(_WORKER_CONFIG, encoding="utf-8")
        branch = self.start.name if self.start.ref and self.start.ref.startswith("refs/heads/") else "main"
        (target / "HEAD").write_text(f"ref: refs/heads/{branch}\n", encoding="utf-8")
        if self.base_commit:
            ref = target / "refs" / "heads" / str(branch)
            ref.parent.mkdir(parents=True, exist_ok=True)
            ref.write_text(f"{self.base_commit}\n", encoding="utf-8")

    def _refuse_nested_repositories(self, wall: Wall) -> None:
        """Asked before git looks at the files: an embedded repository is another place for B to lay traps in."""
        found = bytearray()
        search = "find . -mindepth 2 -name .git -prune -print0 2>/dev/null"
        wall.run(search, timeout=limits.GIT_SECONDS, on_output=found.extend)
        places = [Path(path).parent.as_posix() for path in found.decode(errors="surrogateescape").split("\0") if path]
        hidden = self._ignored(places)
        if nested := sorted(set(places) - hidden):
            raise RunError(
                "repository_error",
                f"The work holds a git repository of its own in {nested[0]}, which can't be committed as files.",
            )

    def _ignored(self, places: Iterable[str]) -> set[str]:
        listing = b"".join(place.encode(errors="surrogateescape") + b"\0" for place in places)
        if not listing:
            return set()
        try:
            hidden = self.git.run("check-ignore", "-z", "--stdin", stdin=listing, work_tree=self.rooms.workspace)
        except GitError:  # exit 1: none of them is ignored
            return set()
        return set(hidden.decode(errors="surrogateescape").split("\0"))

    def _refuse_new_gitlinks(self, tree: str) -> None:
        if new := self._gitlinks(tree) - self._gitlinks(self.base_tree):
            raise RunError(
                "repository_error", f"The work adds or moves a submodule ({min(new)[1]}), which is not allowed."
            )

    def _gitlinks(self, tree: str) -> set[tuple[str, str]]:
        rows = self.git.run("ls-tree", "-r", "-z", tree).decode(errors="surrogateescape").split("\0")
        return {(row.split()[2], row.partition("\t")[2]) for row in rows if row.startswith("160000 ")}


def _unpack(staging: Path, paths: Iterable[str], wall: Wall) -> None:
    """B unpacks what A packs, so that everything in the workspace belongs to B from the start."""
    names = b"".join(b"./" + path.encode(errors="surrogateescape") + b"\0" for path in paths) or b".\0"
    listing = staging.parent / "names"
    listing.write_bytes(names)
    packer = subprocess.Popen(
        [
            "tar",
            "-C",
            str(staging),
            "--null",
            "--no-recursion" if names != b".\0" else "--recursion",
            "-T",
            str(listing),
            "-cf",
            "-",
        ],
        stdout=subprocess.PIPE,
    )
    assert packer.stdout is not None  # noqa: S101 - PIPE was asked for
    said = bytearray()
    with packer.stdout as archive:
        unpacked = wall.run(
            "tar -xf - --no-same-owner --overwrite",
            timeout=limits.GIT_TRANSFER_SECONDS,
            on_output=said.extend,
            stdin=archive,
        )
    if packer.wait() != 0 or not unpacked.succeeded:
        raise RunError("internal_error", f"The workspace could not be filled: {said.decode(errors='replace')[-500:]}")


def _remove(paths: Iterable[str], wall: Wall, private: Path) -> None:
    listing = private / "names"
    listing.write_bytes(b"".join(b"./" + path.encode(errors="surrogateescape") + b"\0" for path in paths))
    with listing.open("rb") as file:
        wall.run("xargs -0 rm -rf --", timeout=limits.GIT_SECONDS, on_output=_ignore, stdin=file)


def _ignore(_data: bytes) -> None:
    """Output that nobody needs."""
