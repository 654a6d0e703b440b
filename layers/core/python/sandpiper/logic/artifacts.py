"""Links to what a run has left in the store: its log and its diff, under the keys of its attempts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.errors import NotFound
from sandpiper.logic import log_parts

if TYPE_CHECKING:
    from sandpiper.logic.log_parts import LogPart
    from sandpiper.models.run import Run
    from sandpiper.ports import Blobs, Clock


RUNS_FOLDER = "runs/"


@dataclass(frozen=True)
class Download:
    url: str
    expires_at: datetime


@dataclass(frozen=True)
class PartDownload:
    part: LogPart
    url: str


@dataclass(frozen=True)
class LogDownload:
    """`url` is of the whole log, once there is one; the parts can be had while the run goes on."""

    url: str | None
    expires_at: datetime
    parts: list[PartDownload]


def spec_key(run_id: str) -> str:
    return f"runs/{run_id}/spec.json"


def result_key(run_id: str, attempt: int) -> str:
    return f"runs/{run_id}/attempts/{attempt}/result.json"


def checkpoint_prefix(run_id: str) -> str:
    """What every key begins with that is needed only as long as the run may go on."""
    return f"runs/{run_id}/checkpoint"


def log_key(run_id: str, attempt: int) -> str:
    """Of the whole log up to and with this attempt."""
    return f"runs/{run_id}/attempts/{attempt}/log.txt"


def log_download(run: Run, blobs: Blobs, clock: Clock, *, after: str | None, limit: int) -> LogDownload:
    """The whole, and a page of the parts behind `after`. Raises NotFound."""
    url = _presigned(blobs, log_key(run.run_id, run.attempt), f"{run.run_id}.log") if _has_whole_log(run) else None
    parts = log_parts.page(blobs, run.run_id, after=after, limit=limit)
    if url is None and not parts and after is None:
        raise _nothing(run, "log")
    links = [PartDownload(part, _presigned(blobs, part.key(run.run_id), f"{run.run_id}.{part.name}")) for part in parts]
    return LogDownload(url, _expiry(clock), links)


def _has_whole_log(run: Run) -> bool:
    """What an earlier attempt put together lacks what was said since; a run at work has more to say."""
    rests = run.is_terminal or run.status == "suspended"
    return rests and run.result is not None and run.result.log_key == log_key(run.run_id, run.attempt)


def diff_download(run: Run, blobs: Blobs, clock: Clock) -> Download:
    if run.result is None or run.result.diff_key is None:
        raise _nothing(run, "diff")
    return Download(_presigned(blobs, run.result.diff_key, f"{run.run_id}.patch"), _expiry(clock))


def _nothing(run: Run, what: str) -> NotFound:
    return NotFound(f"Run {run.run_id} has left no {what}." if run.is_terminal else f"There is no {what} yet.")


def _presigned(blobs: Blobs, key: str, filename: str) -> str:
    return blobs.presign(key, filename=filename, seconds=limits.PRESIGN_SECONDS)


def _expiry(clock: Clock) -> datetime:
    return clock.now() + timedelta(seconds=limits.PRESIGN_SECONDS)
