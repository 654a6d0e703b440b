"""Links to what a run has left in the store: its log and its diff, under the keys of its attempts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.errors import NotFound

if TYPE_CHECKING:
    from sandpiper.models.run import Run
    from sandpiper.ports import Blobs, Clock


RUNS_FOLDER = "runs/"


@dataclass(frozen=True)
class Download:
    url: str
    expires_at: datetime


def spec_key(run_id: str) -> str:
    return f"runs/{run_id}/spec.json"


def result_key(run_id: str, attempt: int) -> str:
    return f"runs/{run_id}/attempts/{attempt}/result.json"


def checkpoint_prefix(run_id: str) -> str:
    """What every key begins with that is needed only as long as the run may go on."""
    return f"runs/{run_id}/checkpoint"


def log_download(run: Run, blobs: Blobs, clock: Clock) -> Download:
    if run.result is None or run.result.log_key is None:
        raise _nothing(run, "log")
    return _download(run.result.log_key, f"{run.run_id}.log", blobs, clock)


def diff_download(run: Run, blobs: Blobs, clock: Clock) -> Download:
    if run.result is None or run.result.diff_key is None:
        raise _nothing(run, "diff")
    return _download(run.result.diff_key, f"{run.run_id}.patch", blobs, clock)


def _nothing(run: Run, what: str) -> NotFound:
    return NotFound(f"Run {run.run_id} has left no {what}." if run.is_terminal else f"There is no {what} yet.")


def _download(key: str, filename: str, blobs: Blobs, clock: Clock) -> Download:
    expires_at = clock.now() + timedelta(seconds=limits.PRESIGN_SECONDS)
    return Download(blobs.presign(key, filename=filename, seconds=limits.PRESIGN_SECONDS), expires_at)
