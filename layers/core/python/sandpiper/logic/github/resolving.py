"""Resolves remarks for a review: GitHub wants the right to write contents for it, and no review's sandbox gets that.

So the sandbox names the threads, and here they are held against what is ours and open on the run's own pull request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.errors import PermissionDenied
from sandpiper.logic.github.minting import at_work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sandpiper.github_ports import Remarks
    from sandpiper.models.github import GitHubOrigin
    from sandpiper.ports import Runs


@dataclass(frozen=True)
class Resolver:
    runs: Runs
    remarks_of: Callable[[GitHubOrigin], Remarks]

    def resolve(self, run_id: str, attempt: int, threads: Sequence[str]) -> int:
        """How many were resolved. Raises NotFound, Fenced, PermissionDenied, GitHubError."""
        run = at_work(self.runs, run_id, attempt)
        if run.spec.github is None or run.spec.type != "code-review":
            raise PermissionDenied("Only a review that was asked for on GitHub resolves remarks.")
        remarks = self.remarks_of(run.spec.github)
        ours = remarks.open_ours()
        chosen = [thread for thread in threads if thread in ours][: limits.RESOLVED_THREADS]
        for thread in chosen:
            remarks.resolve(thread)
        return len(chosen)
