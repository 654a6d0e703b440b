"""The files that hold the rarest of a task's words.

Read from A's objects, one file at a time: nothing of B runs for it, and a huge file is never in memory.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox_task.agent.context.words import Term
    from sandbox_task.workspace.objects import Entry
    from sandbox_task.workspace.repository import Repository

_NOT_TEXT = re.compile(
    r".*\.(png|jpe?g|gif|ico|webp|svg|pdf|zip|gz|bz2|xz|zst|tar|jar|war|whl|so|dylib|dll|exe|bin|o|a|class|pyc|woff2?"
    r"|ttf|otf|eot|mp[34]|wav|ogg|avi|mov|sqlite3?|db|parquet|npy|npz|pkl|lock|map|min\.(js|css))"
    r"|(.*/)?(package-lock\.json|pnpm-lock\.yaml|go\.sum)",
    re.IGNORECASE,
)
_FOREIGN = re.compile(r"(.*/)?(node_modules|vendor|third_party|dist|build|\.git|site-packages)/.*", re.IGNORECASE)
_SECONDARY = re.compile(
    r"(.*/)?(tests?|docs?|examples?|fixtures|changelog[^/]*|[^/]*\.(md|rst|txt|json|ya?ml))(/.*)?", re.IGNORECASE
)
_SECONDARY_WORTH = 0.6
_IN_THE_PATH = 2.0
_LEAST_OF_BEST = 0.35


@dataclass(frozen=True)
class Found:
    """Best first; `searched` of `searchable` files were looked into."""

    paths: tuple[str, ...]
    searched: int
    searchable: int


def search(repository: Repository, entries: Sequence[Entry], terms: Sequence[Term]) -> Found:
    files = [entry for entry in entries if entry.is_file and not _NOT_TEXT.fullmatch(entry.path)]
    files = [entry for entry in files if not _FOREIGN.fullmatch(entry.path)]
    if not terms or not files:
        return Found((), 0, len(files))
    in_path = {entry.path: _held(entry.path.lower(), terms) for entry in files}
    chosen = _within_bounds(
        repository, sorted(files, key=lambda entry: (-len(in_path[entry.path]), entry.path.count("/")))
    )
    needles = [term.text.encode(errors="surrogateescape") for term in terms]
    holds = {}
    for entry, data in zip(chosen, repository.blobs([entry.oid for entry in chosen]), strict=True):
        lowered = data.lower()
        holds[entry.path] = {number for number, needle in enumerate(needles) if needle in lowered}
    return Found(_best(holds, in_path, terms), len(chosen), len(files))


def _held(text: str, terms: Sequence[Term]) -> set[int]:
    return {number for number, term in enumerate(terms) if term.text in text}


def _within_bounds(repository: Repository, files: Sequence[Entry]) -> list[Entry]:
    chosen, room = [], limits.CONTEXT_SEARCH_BYTES
    for entry, size in zip(files, repository.sizes([entry.oid for entry in files]), strict=True):
        if size <= limits.CONTEXT_SEARCH_FILE_BYTES and size <= room:
            chosen.append(entry)
            room -= size
    return chosen


def _best(holds: dict[str, set[int]], in_path: dict[str, set[int]], terms: Sequence[Term]) -> tuple[str, ...]:
    """A word is worth the more the fewer files hold it, and more in a file's name than in the file."""
    inside = _worths(list(holds.values()), terms)
    outside = _worths([in_path[path] for path in holds], terms)
    scores = {
        path: (sum(inside[n] for n in numbers) + _IN_THE_PATH * sum(outside[n] for n in in_path[path]))
        * (_SECONDARY_WORTH if _SECONDARY.fullmatch(path) else 1)
        for path, numbers in holds.items()
    }
    ranked = sorted((path for path in scores if scores[path] > 0), key=lambda path: (-scores[path], len(path), path))
    least = scores[ranked[0]] * _LEAST_OF_BEST if ranked else 0
    return tuple(path for path in ranked[: limits.CONTEXT_FOUND_FILES] if scores[path] >= least)


def _worths(held: Sequence[set[int]], terms: Sequence[Term]) -> list[float]:
    counts = [sum(number in numbers for numbers in held) for number in range(len(terms))]
    return [
        term.weight * math.log((len(held) + 1) / count) if count else 0.0
        for term, count in zip(terms, counts, strict=True)
    ]
