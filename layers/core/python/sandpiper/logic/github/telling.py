"""The status comment of a run, seen to by the control plane while no sandbox does.

Everything is read anew from the run, so the calls may come twice, late or in another order. Two at once would make two
comments: one of them holds it, the other leaves, and whoever held it looks again after letting go. So the comment ends
up saying what the run row says last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.errors import GitHubError, NotFound
from sandpiper.logic.github.status_comment import link_of, marker, render
from sandpiper.models.events import NewEvent
from sandpiper.ports import Revision

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandpiper.github_ports import Holds, Hub, Topics
    from sandpiper.logic.github.places import Place
    from sandpiper.models.github import GitHubOrigin
    from sandpiper.models.run import Run
    from sandpiper.ports import Blobs, Clock, Runs

_LOOKS = 3


@dataclass(frozen=True)
class Teller:
    hub_of: Callable[[Place], Hub]
    runs: Runs
    blobs: Blobs
    topics: Topics
    holds: Holds
    clock: Clock
    public_url: str | None = None

    def tell(self, run_id: str) -> None:
        """Raises GitHubError only where another try may help; anything else is an event of the run."""
        run, hold = self.runs.get(run_id), f"comment#{run_id}"
        if run.spec.github is None:
            return
        self.topics.note(run)  # by now it may have opened a pull request, where people go on speaking of it
        for _ in range(_LOOKS):
            held = self.holds.take(hold, seconds=limits.GITHUB_HELD_SECONDS)
            if held is None:
                return
            try:
                self._try_to_show(run, run.spec.github, again=held.again)
            finally:
                self.holds.release(hold, done=False)
            shown, run = run, self.runs.get(run_id)
            if _looks(run) == _looks(shown):
                return

    def _try_to_show(self, run: Run, origin: GitHubOrigin, *, again: bool) -> None:
        try:
            self._show(run, origin, self.hub_of(origin), again=again)
        except GitHubError as error:
            if error.retryable:
                raise
            told = {"message": f"The status comment could not be written: {error.message}"}
            self.runs.append(run.run_id, [NewEvent(type="warning", data=told)])

    def _show(self, run: Run, origin: GitHubOrigin, hub: Hub, *, again: bool) -> None:
        link, now = link_of(self.public_url, run.run_id), self.clock.now()
        body = render(run, link=link, now=now, diff=self._diff(run))
        comment_id = run.status_comment_id
        if comment_id is None and again:
            comment_id = hub.find_comment(origin.number, marker(run.run_id))
        if comment_id is None:
            comment_id = hub.comment(origin.number, body)
        else:
            hub.edit_comment(comment_id, body)
        if run.status_comment_id is None:
            self._remember(run.run_id, comment_id)

    def _remember(self, run_id: str, comment_id: int) -> None:
        def once(run: Run) -> Revision | None:
            return None if run.status_comment_id else Revision({"status_comment_id": comment_id})

        self.runs.revise(run_id, once)

    def _diff(self, run: Run) -> str | None:
        key = run.result.diff_key if run.result and run.is_terminal else None
        try:
            return self.blobs.get(key).decode(errors="replace") if key else None
        except NotFound:
            return None


def _looks(run: Run) -> tuple[object, ...]:
    """What of a run the control plane's comment depends on; the rest is the sandbox's to tell."""
    return run.status, run.suspend_reason, run.queue_position, run.approval, run.attempt
