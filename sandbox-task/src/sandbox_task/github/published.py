"""What a run has made public so far, as far as a later attempt needs to know it to go on from there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from sandpiper.models.base import Model as Record
from sandpiper.models.run import CommitInfo, GateReport, PullRequestInfo, StoryOutcome

if TYPE_CHECKING:
    from sandbox_task.progress import Progress


class Published(Record):
    commit: CommitInfo
    pull_request: PullRequestInfo | None = None
    gate: GateReport | None = None
    story: StoryOutcome | None = None
    ci_rounds: int = 0
    awaits_ci: bool = False  # False: an agent is repairing what CI found

    @classmethod
    def of(cls, progress: Progress) -> Self | None:
        if progress.commit is None or not progress.commit.pushed:
            return None
        return cls(
            commit=progress.commit,
            pull_request=progress.pull_request,
            gate=progress.gate,
            story=progress.story,
            ci_rounds=progress.ci_rounds,
            awaits_ci=progress.awaits_ci,
        )

    def restore(self, progress: Progress) -> None:
        for name in type(self).model_fields:
            setattr(progress, name, getattr(self, name))
