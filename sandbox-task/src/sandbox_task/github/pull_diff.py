"""What a pull request changes, as GitHub shows it: since it left its base."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandbox_task.agent.context.marking import as_data
from sandbox_task.workspace import fetching
from sandbox_task.workspace.git import GitError
from sandpiper import limits

if TYPE_CHECKING:
    from sandbox_task.workspace.repository import Repository
    from sandpiper.models.github import PullRequest

_OPTIONS = ("--no-ext-diff", "--no-textconv", "--find-renames", "--ignore-submodules", "--no-color")


@dataclass(frozen=True)
class PullDiff:
    pull: PullRequest
    _known: dict[str | None, str | None] = field(default_factory=dict, init=False)

    def text(self, repository: Repository) -> str | None:
        """None: it is too large, or not to be had."""
        if repository.base_commit not in self._known:
            self._known[repository.base_commit] = _read(repository)
        return self._known[repository.base_commit]

    def told(self, repository: Repository, *, tokens: int) -> str:
        """For the model, as data: so much of it, and how to see the rest."""
        how = f"`git fetch origin {self.pull.base_ref} && git diff FETCH_HEAD...HEAD` shows all of it."
        diff = self.text(repository)
        if diff is None:
            return f"The pull request's diff is too large to be shown here. {how}"
        most = tokens * limits.CHARS_PER_TOKEN
        rest = f"\n(The rest is left out. {how})" if len(diff) > most else ""
        shown = diff[:most].encode(errors="surrogateescape").decode(errors="replace")
        return f"The pull request's diff:\n{as_data(shown)}{rest}"


def _read(repository: Repository) -> str | None:
    git = repository.git
    try:
        since = git.text("merge-base", fetching.SETTLED, str(repository.base_commit))
    except GitError:
        return None
    with git.stream("diff", *_OPTIONS, since, str(repository.base_commit)) as output:
        diff = output.read(limits.REVIEW_DIFF_BYTES + 1)
    return diff.decode(errors="surrogateescape") if len(diff) <= limits.REVIEW_DIFF_BYTES else None
