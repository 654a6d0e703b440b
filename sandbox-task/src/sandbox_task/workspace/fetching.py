"""What is fetched of a repository. A small one comes whole; a large one does not cost a full download.

Commits and trees always come, so `git log` is complete. Contents come with them as long as they are few; if not, those
of the base and of the last commits are asked for by name, so that `git show` has what it shows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox_task.workspace.git import OFFLINE, GitError
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sandbox_task.workspace.git import Git
    from sandbox_task.workspace.narrowing import Narrowing

BASE = "refs/sandpiper/base"
SETTLED = "refs/sandpiper/settled"
OTHER = "refs/sandpiper/other"
# Said in so many words: without a depth, a shallow remote makes a filtered fetch call itself without end.
_ALL_HISTORY = "--depth=2147483647"
# What old tools have left in the history of many a repository; it can harm nobody.
_OLD_DEFECTS = (
    "badDate", "badDateOverflow", "badEmail", "badName", "badTimezone", "missingEmail", "missingNameBeforeEmail",
    "missingSpaceBeforeDate", "missingSpaceBeforeEmail", "multipleAuthors", "zeroPaddedDate", "zeroPaddedFilemode",
)  # fmt: skip
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def fetch_base(git: Git, ref: str) -> bool:
    """Whether the contents of the whole history came along. Raises GitError."""
    small = f"--filter=blob:limit={limits.HISTORY_FILE_BYTES}"
    try:
        _fetch(git, ref, small, seconds=limits.HISTORY_SECONDS, most_bytes=limits.HISTORY_PACK_BYTES)
    except GitError:  # too large, or something that the next fetch says better
        _drop_unfinished(git)
        _fetch(git, ref, "--filter=blob:none", seconds=limits.GIT_TRANSFER_SECONDS)
        return False
    return True


def fetch_settled(git: Git, ref: str) -> None:
    """The branch that a continued one belongs to, for what it declares. Raises GitError."""
    _fetch(git, ref, "--filter=blob:none", seconds=limits.GIT_TRANSFER_SECONDS, into=SETTLED)


def fetch_other(git: Git, ref: str) -> str:
    """A branch as it is now, or a commit, beside the base; its id. Raises GitError."""
    _fetch(git, ref, "--filter=blob:none", seconds=limits.GIT_TRANSFER_SECONDS, into=OTHER)
    return git.text("rev-parse", "--verify", f"{OTHER}^{{commit}}")


def fetch_commit(git: Git, commit: str) -> None:
    """Make the base this commit, which may have come already. Raises GitError if it is not to be had."""
    if not _COMMIT.fullmatch(commit):
        raise GitError("fetch", f"{commit!r} is no commit id")
    try:
        git.run("update-ref", BASE, f"{commit}^{{commit}}", extra_env=OFFLINE)
    except GitError:
        _fetch(git, commit, "--filter=blob:none", seconds=limits.GIT_TRANSFER_SECONDS)


def fetch_contents(git: Git, commit: str, oids: Iterable[str]) -> None:
    """Those of a commit's files that have not come yet, all at once and of any size. Raises GitError."""
    if missing := sorted(set(_missing(git, commit, 1)) & set(oids)):
        _fetch_objects(git, missing, seconds=limits.GIT_TRANSFER_SECONDS)


def fetch_recent(git: Git, commit: str, narrowing: Narrowing) -> bool:
    """The contents that the last commits changed. Best effort: False if they are too many, too large, or not given."""
    for commits in limits.RECENT_COMMITS:
        missing = _missing(git, commit, commits, *(("--", *narrowing.pathspecs()) if narrowing else ()))
        if len(missing) <= limits.RECENT_FILES:
            break
    else:
        return False
    try:
        if missing:
            _fetch_objects(git, missing, seconds=limits.HISTORY_SECONDS, most_bytes=limits.HISTORY_PACK_BYTES)
    except GitError:
        _drop_unfinished(git)
        return False
    return True


def _missing(git: Git, commit: str, commits: int, *where: str) -> list[str]:
    listed = git.run("rev-list", "--objects", "--missing=print", f"--max-count={commits}", commit, *where)
    return [line[1:].decode() for line in listed.splitlines() if line.startswith(b"?")]


def _fetch_objects(git: Git, oids: Iterable[str], *, seconds: float, most_bytes: int | None = None) -> None:
    wanted = "".join(f"{oid}\n" for oid in oids).encode()
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none", "--stdin")
    fetch = ("-c", "fetch.negotiationAlgorithm=noop", "fetch", *options, "origin")
    git.read_remote(*fetch, stdin=wanted, seconds=seconds, most_bytes=most_bytes)


def _drop_unfinished(git: Git) -> None:
    for pack in (git.git_dir / "objects" / "pack").glob("tmp_*"):
        pack.unlink()


def _fetch(
    git: Git, ref: str, filter_: str, *, seconds: float, most_bytes: int | None = None, into: str = BASE
) -> None:
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", _ALL_HISTORY, filter_)
    arguments = ("fetch", *options, "--", "origin", f"+{ref}:{into}")
    try:
        git.read_remote(*arguments, seconds=seconds, most_bytes=most_bytes)
    except GitError as error:
        if "fsck error" not in error.complaint:
            raise
        git.read_remote("-c", "transfer.fsckObjects=false", *arguments, seconds=seconds, most_bytes=most_bytes)
        _check_leniently(git)


def _check_leniently(git: Git) -> None:
    """A fetch can't be told to overlook some defects (not before git 2.44, in a partial clone), but fsck can."""
    overlook = [part for defect in _OLD_DEFECTS for part in ("-c", f"fsck.{defect}=ignore")]
    git.run(*overlook, "fsck", "--no-dangling", "--no-progress", seconds=limits.GIT_TRANSFER_SECONDS)
