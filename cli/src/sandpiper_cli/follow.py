"""From the first event of a run to its exit code."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper_cli import exits
from sandpiper_cli.failures import ApiError, Unreachable
from sandpiper_cli.live import Stream
from sandpiper_cli.render import Ending, View

if TYPE_CHECKING:
    from sandpiper_cli.client import Api, Event, Json, Link

SETTLE_SECONDS = 3.0
_LOOK_EVERY_SECONDS = 0.5
_STORAGE_FAILURES = (ApiError, Unreachable)
_EXIT_CODES = {"completed": exits.COMPLETED, "suspended": exits.SUSPENDED}


def follow(api: Api, run_id: str, view: View, *, after: int = 0, wait: bool = False) -> Json:
    """Show a run until it is over or, unless `wait`, until it waits for a person; returns it as it is then."""
    with view:
        run = _shown(api, run_id, view, after=after, wait=wait) or api.run(run_id)
        view.ended(Ending(run, _diff_of(api, run), _log_of(api, run_id)))
    return run


def exit_code_of(run: Json) -> int:
    return _EXIT_CODES.get(run["status"], exits.NOT_COMPLETED)


def _shown(api: Api, run_id: str, view: View, *, after: int, wait: bool) -> Json | None:
    suspension = _Suspension(api, run_id)
    if after and not wait and (run := suspension.settled(after)):
        return run
    for event in Stream(api, run_id, after=after, on_delta=view.delta):
        view.event(event)
        if (run := suspension.noticed(event)) is None:
            continue
        if not wait:
            return run
        view.waiting(run)
    return None


@dataclass
class _Suspension:
    """Whether the run waits for a person now. Its log may tell of earlier times, or of an answer that is on its way."""

    api: Api
    run_id: str
    _told: bool = False

    def noticed(self, event: Event) -> Json | None:
        if event.type in {"run_suspended", "run_resumed"}:
            self._told = event.type == "run_suspended"
        return self.settled(event.seq) if self._told else None

    def settled(self, seen: int) -> Json | None:
        """The run, if it is suspended and stays so for a while after what was seen."""
        for look in range(int(SETTLE_SECONDS / _LOOK_EVERY_SECONDS) + 1):
            if look:
                time.sleep(_LOOK_EVERY_SECONDS)
            run = self.api.run(self.run_id)
            if run["status"] != "suspended" or run["last_seq"] > seen:
                return None
        return run


def _diff_of(api: Api, run: Json) -> str | None:
    """Of a run that has ended; half-done work is shown by `sandpiper diff`."""
    if run["status"] == "suspended" or not ((run.get("result") or {}).get("diff_stat") or {}).get("files"):
        return None
    try:
        return api.diff_text(run["run_id"])
    except _STORAGE_FAILURES:
        return None  # the run's outcome is what was asked for; `sandpiper diff` says what is wrong with the diff


def _log_of(api: Api, run_id: str) -> Link | None:
    try:
        return api.logs(run_id).whole
    except _STORAGE_FAILURES:
        return None  # a run that never had a sandbox has no log
