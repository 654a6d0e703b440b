"""Pull requests: what we ask GitHub about them, and what we tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandpiper.models.run import PullRequestInfo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sandpiper.adapters.github.client import GitHubClient


@dataclass(frozen=True)
class Pulls:
    """Of one repository (`owner/name`). Everything raises GitHubError."""

    client: GitHubClient
    repository: str

    def get(self, number: int) -> dict[str, Any]:
        pull: dict[str, Any] = self.client.call("GET", f"{self._path}/pulls/{number}")
        return pull

    def open(self, *, title: str, body: str, head: str, base: str, draft: bool) -> PullRequestInfo:
        fields = {"title": title, "body": body, "head": head, "base": base, "draft": draft}
        return as_info(self.client.call("POST", f"{self._path}/pulls", fields))

    def find_open(self, branch: str) -> dict[str, Any] | None:
        """The one that asks for this branch of the same repository to be merged."""
        owner = self.repository.partition("/")[0]
        query = {"head": f"{owner}:{branch}", "state": "open", "per_page": 1}
        return next(iter(self.client.call("GET", f"{self._path}/pulls", query=query)), None)

    def update(self, number: int, fields: Mapping[str, Any]) -> None:
        self.client.call("PATCH", f"{self._path}/pulls/{number}", dict(fields))

    def add_labels(self, number: int, labels: Sequence[str]) -> None:
        """Safe to repeat."""
        self.client.call("POST", f"{self._path}/issues/{number}/labels", {"labels": list(labels)}, repeatable=True)

    def edit_comment(self, comment_id: int, body: str) -> None:
        """A comment of an issue's or a pull request's conversation."""
        self.client.call("PATCH", f"{self._path}/issues/comments/{comment_id}", {"body": body})

    def default_branch(self) -> str:
        return str(self.client.call("GET", self._path)["default_branch"])

    @property
    def _path(self) -> str:
        return f"/repos/{self.repository}"


def as_info(pull: Mapping[str, Any]) -> PullRequestInfo:
    return PullRequestInfo(number=pull["number"], url=pull["html_url"], draft=bool(pull.get("draft")))
