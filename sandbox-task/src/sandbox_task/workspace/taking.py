"""The tree of what B has made, taken from its files by A's git. What lies outside of the work stays as it was."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_task.isolation.wall import WallError
from sandbox_task.workspace.git import GitError
from sandbox_task.workspace.known_tree import KnownTree, NotSoEasy
from sandbox_task.workspace.names import printable
from sandbox_task.workspace.objects import list_differences
from sandpiper import limits
from sandpiper.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox_task.isolation.wall import Wall
    from sandbox_task.workspace.git import Git
    from sandbox_task.workspace.narrowing import Narrowing
    from sandbox_task.workspace.objects import Difference

# What B has closed; only that: a mode that is set again, even to what it was, makes git read the file again. And
# repositories in the repository, asked before git looks at the files: another place for B to lay traps in.
_LOOK_OVER = (
    r"find . -path ./.git -prune -o -name .git -prune -print0"
    r" -o \( -type d ! -perm -550 -o -type f ! -perm -440 \) -exec chmod u+rX,g+rX {} \; 2>/dev/null"
)


@dataclass
class Taking:
    """How the trees of one clone are taken. Nothing of B may move meanwhile."""

    git: Git
    base_tree: str
    narrowing: Narrowing
    has_submodules: bool
    _known: KnownTree | None = field(default=None, init=False)

    def take(self, wall: Wall, *, refresh: bool = True) -> str:
        """Raises RunError for what can't be committed, WallError if the files can't be looked at.

        Without `refresh` it is quicker where few files have changed since the last time, and good enough to go on from,
        but nothing to publish: what B writes through a mapping into memory changes a file and not its dates.
        """
        _refuse_nested_repositories(self.git, wall)
        if refresh or self.narrowing:
            _look_anew(self.git, self.base_tree)
        if self.narrowing:
            _stage_narrowed(self.git, self.narrowing)
        else:
            _add(self.git, "--all")
        return self._checked(self.git.text("write-tree"))

    def take_contents(self, last: str, files: tuple[str, ...] | None) -> str | None:
        """Where there are no other files than in the last tree: in these is something else, or nobody knows in which.

        None: it is not so easy.
        """
        if self.narrowing or self.has_submodules:
            return None
        if files is None or len(files) > limits.FOOTPRINT_CHANGED:
            return self._update_all()
        known = self._known if self._known and self._known.tree == last else KnownTree.read(self.git, last)
        self._known = None  # until it is known to be whole
        try:
            tree = known.take(self.git.work_tree, files)
        except (NotSoEasy, OSError):
            return None
        self._known = known
        return tree

    def _update_all(self) -> str | None:
        try:
            self.git.run(
                "-c", "core.preloadIndex=false", "add", "--update", "--", ":/"
            )  # threads cost more than they save
        except GitError:  # a file that is closed to A
            return None
        return self.git.text("write-tree")

    def _checked(self, tree: str) -> str:
        if self.has_submodules:
            tree = _with_submodules(self.git, self.base_tree, tree)
        if self.narrowing:
            _refuse_loss_outside(self.git, self.base_tree, tree, self.narrowing)
        return tree


def _look_anew(git: Git, base_tree: str) -> None:
    """Forgets the dates of all files, and tells unchanged ones by their hash, where `add` would also compress each of
    them again."""
    git.run("read-tree", base_tree)
    git.run("update-index", "-q", "--refresh")


def _stage_narrowed(git: Git, narrowing: Narrowing) -> None:
    """What is in the workspace is taken from wherever it is; what is not there is deleted only inside of the paths."""
    _add(git, "--ignore-removal")
    deleted = git.run("ls-files", "--deleted", "-z", "--", *narrowing.pathspecs())
    git.run("update-index", "--force-remove", "-z", "--stdin", stdin=deleted)


def _add(git: Git, how: str) -> None:
    try:
        git.run("add", how, "--", ":/")
    except GitError as error:  # a pipe in the place of a file, a path that is too long, …
        complaint = printable(error.complaint)[: limits.WALL_ERROR_CHARS]
        raise RunError("repository_error", f"The work holds files that git can't keep: {complaint}") from error


def _with_submodules(git: Git, base_tree: str, tree: str) -> str:
    """Their directories are empty here, so it means nothing if one is gone."""
    links = [each for each in list_differences(git, base_tree, tree) if "160000" in (each.before.mode, each.after.mode)]
    if not links:
        return tree
    if changed := [each for each in links if each.status != "D"]:
        complaint = f"The work adds or moves a submodule ({_name(changed)}), which is not allowed."
        raise RunError("repository_error", complaint)
    kept = "".join(f"160000 {each.before.oid}\t{each.before.path}\0" for each in links)
    git.run("update-index", "-z", "--index-info", stdin=kept.encode(errors="surrogateescape"))
    return git.text("write-tree")


def _refuse_loss_outside(git: Git, base_tree: str, tree: str, narrowing: Narrowing) -> None:
    """A file in the place of a directory would take all of it along."""
    lost = [
        each
        for each in list_differences(git, base_tree, tree)
        if each.status == "D" and not narrowing.holds(each.before.path)
    ]
    if lost:
        raise RunError("repository_error", f"The work would delete {_name(lost)}, which is outside of `paths`.")


def _name(differences: list[Difference]) -> str:
    return printable(differences[0].before.path)


def _refuse_nested_repositories(git: Git, wall: Wall) -> None:
    found = bytearray()
    done = wall.run(_LOOK_OVER, timeout=limits.GIT_SECONDS, on_output=found.extend)
    if done.ended_by != "itself":
        raise WallError("The files could not be looked at.")
    places = [Path(path).parent.as_posix() for path in found.decode(errors="surrogateescape").split("\0") if path]
    if nested := sorted(set(places) - _ignored(git, places)):
        raise RunError(
            "repository_error",
            f"The work holds a git repository of its own in {printable(nested[0])}, which can't be committed as files.",
        )


def _ignored(git: Git, places: Iterable[str]) -> set[str]:
    listing = b"".join(place.encode(errors="surrogateescape") + b"\0" for place in places)
    if not listing:
        return set()
    try:
        hidden = git.run("check-ignore", "-z", "--stdin", stdin=listing)
    except GitError:  # exit 1: none of them is ignored
        return set()
    return set(hidden.decode(errors="surrogateescape").split("\0"))
