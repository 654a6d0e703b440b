"""Disk space as commands use it up: looked at from time to time, cheaply as long as little changes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sandbox_task.isolation.bounds.quota import Quota
from sandbox_task.isolation.bounds.usage import bytes_below, space
from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_GIB = 1024**3
_REST = 20  # counting files takes one part of the time, doing nothing at least this many


class Disk:
    """Says in words when commands have to end. Files are counted only when the file system has filled noticeably."""

    def __init__(self, places: Sequence[Path], *, quota: int, reserve: int) -> None:
        self._places, self._quota, self._reserve = places, quota, reserve
        self._written = Quota(quota, slack=limits.WALL_DISK_STEP_BYTES)
        self._short = Quota(0, slack=limits.WALL_DISK_STEP_BYTES)
        self._few = Quota(0, slack=limits.WALL_SPARE_FILES // 10)
        self._counted_at_use = -limits.WALL_DISK_STEP_BYTES
        self._count_from = 0.0

    @property
    def is_full(self) -> bool:
        return self._written.is_full or self._short.is_full or self._few.is_full

    def complaint(self) -> str | None:
        used, left, files = space(self._places[0])
        if self._short.exceeded(self._reserve - left) or self._few.exceeded(limits.WALL_SPARE_FILES - files):
            return "The disk is nearly full. What ran was ended; remove what is not needed, then go on."
        if self._is_due(used) and self._written.exceeded(self._count(used)):
            return (
                f"The workspace, home and temporary files take up more than {self._quota / _GIB:.3g} GiB. "
                "What ran was ended; remove what is not needed, then go on."
            )
        return None

    def _is_due(self, used: int) -> bool:
        changed = abs(used - self._counted_at_use) >= limits.WALL_DISK_STEP_BYTES
        return (changed or self._written.is_full) and time.monotonic() >= self._count_from

    def _count(self, used: int) -> int:
        self._counted_at_use = used
        began = time.monotonic()
        # twice the quota: beyond it, more or less still has to be told apart
        total = bytes_below(self._places, at_most=2 * self._quota)
        self._count_from = time.monotonic() + _REST * (time.monotonic() - began)
        return total
