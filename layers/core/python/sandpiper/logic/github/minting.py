"""Who gets a token: the sandbox of a run that was asked for on GitHub, for the repository it was asked for in.

A run that was asked for by HTTPS gets none, whoever owns it: its caller has not shown that the repository is theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper.errors import Fenced
from sandpiper.logic.github.permissions import permissions_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandpiper.logic.github.permissions import Permissions
    from sandpiper.logic.github.places import Place
    from sandpiper.models.github import RepositoryToken
    from sandpiper.models.run import Run
    from sandpiper.ports import Runs


def at_work(runs: Runs, run_id: str, attempt: int) -> Run:
    """The run, in whose name only its sandbox at work may ask for anything. Raises NotFound, Fenced."""
    run = runs.get(run_id)
    if run.attempt != attempt or run.status not in {"provisioning", "running"}:
        raise Fenced(f"Attempt {attempt} of {run_id} is over.")
    return run


@dataclass(frozen=True)
class Minter:
    runs: Runs
    mint: Callable[[Place, Permissions], RepositoryToken]

    def token(self, run_id: str, attempt: int) -> RepositoryToken | None:
        """Raises NotFound, Fenced, GitHubError."""
        run = at_work(self.runs, run_id, attempt)
        if run.spec.github is None:
            return None
        return self.mint(run.spec.github, permissions_for(run.spec.type))
