"""A run that goes on after it has pushed: what CI has said since decides what there is to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox_task.agent import prompting
from sandbox_task.workspace import complaints, fetching
from sandbox_task.workspace.git import GitError

if TYPE_CHECKING:
    from sandbox_task.work import Work
    from sandbox_task.workspace.repository import Repository


def after_push(work: Work, repository: Repository) -> str:
    """What the agent is to repair; empty if an earlier attempt has pushed nothing, or CI is not what it waited for.

    `progress.ci` is set if CI has the last word and nothing is left to do. Raises RunError, Suspended.
    """
    left_off = work.left_off
    if left_off is None or left_off.published is None:
        return ""
    left_off.published.restore(work.progress)
    repository.tip = _fetched(repository, left_off.published.commit.sha)
    if not left_off.published.awaits_ci or work.github.following is None:
        return ""
    red = work.github.following.result(work.progress)
    # What was finished and proven is not what is to be repaired now.
    work.left_off = left_off.model_copy(update={"finished": None, "proof": None})
    return f"\n\n{prompting.ci_prompt(red)}" if red else ""


def _fetched(repository: Repository, sha: str) -> str:
    try:
        return fetching.fetch_other(repository.git, sha)
    except GitError as error:
        raise complaints.while_reading(error, repository.name) from error
