"""Where a repository is to be had that was renamed while the run worked.

Git is not sent on by whoever answers: the token goes where it was meant to. GitHub's API is asked instead, and believed
only if it is still the same repository, by its number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpiper.errors import GitHubError
from sandpiper.logic.repos import RefusedRepository, RepoRules

if TYPE_CHECKING:
    from sandpiper.adapters.github.client import GitHubClient
    from sandpiper.logic.github.places import Place


@dataclass(frozen=True)
class Whereabouts:
    client: GitHubClient
    place: Place
    github_url: str

    def __call__(self) -> str | None:
        """Its URL now. None: nobody knows, or there is another repository by its old name."""
        try:
            found = self.client.call("GET", f"/repos/{self.place.repository}")
            is_same = self.place.repository_id is not None and found["id"] == self.place.repository_id
            return RepoRules(self.github_url).url_of(found["full_name"]) if is_same else None
        except (GitHubError, RefusedRepository):
            return None
