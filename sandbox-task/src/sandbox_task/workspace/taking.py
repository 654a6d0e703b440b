"""The tree of what B has made, taken from its files by A's git. What lies outside of the work stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_task.workspace.crossing import ignore
from sandbox_task.workspace.git import GitError
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
# What B has closed. Only that: a mode that is set again, even to what it was, makes git read the file again.
_OPEN_UP = r"find . \( -type d ! -perm -550 -o -type f ! -perm -440 \) -exec chmod u+rX,g+rX {} \;"


def take_tree(git: Git, wall: Wall, base_tree: str, narrowing: Narrowing) -> str:
    """Nothing of B may be alive. Raises RunError for what can't be committed."""
    wall.run(_OPEN_UP, timeout=limits.GIT_SECONDS, on_output=ignore)
    _refuse_nested_repositories(git, wall)
    if narrowing:
        _stage_narrowed(git, base_tree, narrowing)
    else:
        _refresh(git)
        _add(git, "--all")
    tree = _with_submodules(git, base_tree)
    if narrowing:
        _refuse_loss_outside(git, base_tree, tree, narrowing)
    return tree


def _refresh(git: Git) -> None:
    """Tells unchanged files by their hash, where `add` would also compress each of them again."""
    git.run("update-index", "-q", "--refresh")


def _stage_narrowed(git: Git, base_tree: str, narrowing: Narrowing) -> None:
    """What is in the workspace is taken from wherever it is; what is not there is deleted only inside of the paths."""
    git.run("read-tree", base_tree)
    _refresh(git)
    _add(git, "--ignore-removal")
    deleted = git.run("ls-files", "--deleted", "-z", "--", *narrowing.pathspecs())
    git.run("update-index", "--force-remove", "-z", "--stdin", stdin=deleted)


def _add(git: Git, how: str) -> None:
    try:
        git.run("add", how, "--", ":/")
    except GitError as error:  # a pipe in the place of a file, a path that is too long, …
        complaint = printable(error.complaint)[: limits.WALL_ERROR_CHARS]
        raise RunError("repository_error", f"The work holds files that git can't keep: {complaint}") from error


def _with_submodules(git: Git, base_tree: str) -> str:
    """Their directories are empty here, so it means nothing if one is gone."""
    tree = git.text("write-tree")
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
    """Asked before git looks at the files: an embedded repository is another place for B to lay traps in."""
    found = bytearray()
    search = "find . -mindepth 2 -name .git -prune -print0 2>/dev/null"
    wall.run(search, timeout=limits.GIT_SECONDS, on_output=found.extend)
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
