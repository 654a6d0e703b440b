"""Who may see a run: its owner, and who acts for the owner. To everybody else it does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.errors import NotFound

if TYPE_CHECKING:
    from sandpiper.models.identity import Identity
    from sandpiper.models.run import Run
    from sandpiper.ports import Runs


def no_such_run(run_id: str) -> NotFound:
    return NotFound(f"There is no run {run_id}.")


def own_run(runs: Runs, run_id: str, identity: Identity) -> Run:
    if len(run_id) > limits.MAX_NAME_CHARS:  # no key of the database either
        raise no_such_run(f"{run_id[: limits.MAX_NAME_CHARS]}…")
    run = runs.get(run_id)
    if run.owner not in {identity.user, identity.acts_for}:
        raise no_such_run(run_id)
    return run
