"""The run's status comment while the sandbox is at work: edited now and then, by one thread, and never in the way."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from sandpiper import limits
from sandpiper.errors import GitHubError, SandpiperError
from sandpiper.logic.github.status_comment import Live, render
from sandpiper.models.run import GateReport, Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandpiper.adapters.github.pulls import Pulls
    from sandpiper.ports import Clock, Runs

# Few, and such that a reader cares: each may cost a call. What comes at the end is told by the control plane at once.
_ACTIVITIES = {
    "planning_completed": "Working on the plan.",
    "approval_requested": "Waits for an answer to {approval_id}.",
    "gate_repair_started": "Repairing what the checks found.",
    "gate_completed": "The checks are done.",
    "gate_skipped": "There was nothing to check with.",
    "commit_pushed": "The work is pushed.",
}


class StatusComment:
    """Fed with every event of the run (`observe`); what is no milestone costs nothing."""

    def __init__(
        self,
        runs: Runs,
        run_id: str,
        clock: Clock,
        *,
        connect: Callable[[Callable[[float], None]], Pulls],
        link: str | None,
        note: Callable[[str], None],
    ) -> None:
        """`connect` makes the way to GitHub, with how it waits between tries."""
        self._runs, self._run_id, self._clock = runs, run_id, clock
        self._link, self._note = link, note
        self._live, self._shown = Live(), Live()
        self._wake, self._closing = threading.Event(), threading.Event()
        self._pulls = connect(self._pause)
        self._thread = threading.Thread(target=self._edit_all, name="status-comment", daemon=True)
        self._thread.start()

    def observe(self, type_: str, data: dict[str, Any]) -> None:
        if type_ not in _ACTIVITIES:
            return
        live = self._live
        self._live = Live(
            plan=Plan.model_validate(data["plan"]) if "plan" in data else live.plan,
            activity=_ACTIVITIES[type_].format(**data),
            gate=GateReport.model_validate(data) if type_ == "gate_completed" else live.gate,
        )
        self._wake.set()

    def close(self) -> None:
        """The last word is the control plane's, so what is not shown by now need not be."""
        self._closing.set()
        self._wake.set()
        self._thread.join(limits.GITHUB_READ_SECONDS)

    def _pause(self, seconds: float) -> None:
        """No edit may come after the last word."""
        if self._closing.wait(seconds):
            raise GitHubError("the sandbox's work is over", code=0)

    def _edit_all(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._wake.clear()
            if self._closing.is_set() or not self._edit():
                return
            self._closing.wait(limits.STATUS_COMMENT_SECONDS)

    def _edit(self) -> bool:
        """Whether to go on: a GitHub that is away, or refuses, is not asked again and again."""
        if self._live == self._shown:
            return True
        live = self._live
        try:
            run = self._runs.get(self._run_id)
            if run.status_comment_id is None or run.is_terminal:
                return not run.is_terminal
            body = render(run, link=self._link, now=self._clock.now(), live=live)
            self._pulls.edit_comment(run.status_comment_id, body)
        except SandpiperError as error:
            self._note(f"the status comment is left as it is: {error.message}")
            return False
        self._shown = live
        return True
