"""From the first event of a run to its exit code."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from sandpiper_cli import exits
from sandpiper_cli.client import Api, ApiError, Unreachable
from sandpiper_cli.live import LiveEvents
from sandpiper_cli.render import Ending, View

if TYPE_CHECKING:
    from sandpiper_cli.client import Json, Link

_STORAGE_FAILURES = (ApiError, Unreachable)


def follow(api: Api, run_id: str, view: View, *, after: int = 0) -> Json:
    """Show a run until it is over; returns it as it is then."""
    with view:
        for event in LiveEvents(api, run_id, after=after):
            view.event(event)
        run = api.run(run_id)
        view.ended(Ending(run, _diff_of(api, run), _log_of(api, run_id)))
    return run


def exit_code_of(run: Json) -> int:
    return exits.COMPLETED if run["status"] == "completed" else exits.NOT_COMPLETED


def _diff_of(api: Api, run: Json) -> str | None:
    if not ((run.get("result") or {}).get("diff_stat") or {}).get("files"):
        return None
    try:
        return diff_text(api, run["run_id"])
    except _STORAGE_FAILURES:
        return None  # the run's outcome is what was asked for; `sandpiper diff` says what is wrong with the diff


def _log_of(api: Api, run_id: str) -> Link | None:
    try:
        return api.logs(run_id)
    except _STORAGE_FAILURES:
        return None  # a run that never had a sandbox has no log


def diff_text(api: Api, run_id: str) -> str:
    content = io.BytesIO()
    api.download(api.diff(run_id), content)
    return content.getvalue().decode("utf-8", errors="replace")
