"""The log of a run, stored in compressed parts while it grows. A part's name says where it belongs.

`000002-00000017.58-61.log.gz` is part 17 of attempt 2 and tells of the events 58 to 61; `.0-0` tells of none, which is
what a long output of one command looks like. Names sort in the order of the log.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from itertools import batched
from typing import TYPE_CHECKING

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandpiper.ports import Blobs

CONTENT_TYPE = "application/gzip"
NAME_PATTERN = r"^([0-9]{6})-([0-9]{8})\.([0-9]{1,13})-([0-9]{1,13})\.log\.gz$"
_FAST = 3  # of gzip's levels; the best saves a tenth and takes five times as long


@dataclass(frozen=True)
class LogPart:
    """`first_seq` and `last_seq` are the numbers of the events that it tells of, 0 if of none."""

    attempt: int
    number: int
    first_seq: int = 0
    last_seq: int = 0

    @property
    def name(self) -> str:
        return f"{self.attempt:06}-{self.number:08}.{self.first_seq}-{self.last_seq}.log.gz"

    def key(self, run_id: str) -> str:
        return _prefix(run_id) + self.name


def store(blobs: Blobs, run_id: str, part: LogPart, text: bytes) -> None:
    """Safe to repeat."""
    blobs.put(part.key(run_id), gzip.compress(text, _FAST, mtime=0), content_type=CONTENT_TYPE)


def page(blobs: Blobs, run_id: str, *, after: str | None, limit: int) -> list[LogPart]:
    """The next parts behind the one that is named."""
    prefix = _prefix(run_id)
    found = blobs.keys(prefix, after=f"{prefix}{after or ''}", limit=limit)
    return [_part(key.removeprefix(prefix)) for key in found]


def whole(blobs: Blobs, run_id: str) -> Iterator[bytes]:
    """All of it as plain text, piece by piece, never more than a few parts in memory."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - the api reads no part, and imports this, too

    with ThreadPoolExecutor(limits.LOG_READERS) as pool:
        for parts in batched(_all(blobs, run_id), limits.LOG_READERS, strict=False):
            yield from pool.map(lambda part: gzip.decompress(blobs.get(part.key(run_id))), parts)


def _all(blobs: Blobs, run_id: str) -> Iterator[LogPart]:
    after = None
    while parts := page(blobs, run_id, after=after, limit=limits.MAX_PAGE):
        yield from parts
        after = parts[-1].name


def _prefix(run_id: str) -> str:
    return f"runs/{run_id}/log/"


def _part(name: str) -> LogPart:
    found = re.fullmatch(NAME_PATTERN, name)
    if found is None:
        message = f"{name} is no part of a log"
        raise ValueError(message)
    return LogPart(*map(int, found.groups()))
