"""Reviews of pull requests, and the threads of remarks that they leave. Threads are to be had by GraphQL only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sandpiper import limits
from sandpiper.models.base import Model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sandpiper.adapters.github.client import GitHubClient

Verdict = Literal["COMMENT", "REQUEST_CHANGES"]

_THREADS = """
query($owner: String!, $name: String!, $number: Int!, $cursor: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviewThreads(first: 100, after: $cursor) {
      pageInfo { hasNextPage endCursor }
      nodes { id isResolved isOutdated path line comments(first: 1) { nodes { body viewerDidAuthor } } }
    } } }
}
"""
_RESOLVE = """
mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { id isResolved } } }
"""


class LineComment(Model):
    """A remark at a line of the diff, as GitHub takes it."""

    path: str
    line: int
    side: Literal["LEFT", "RIGHT"] = "RIGHT"
    body: str


class Thread(Model):
    """A remark that was made before. `is_outdated`: its line has changed since."""

    id: str
    path: str
    line: int | None
    body: str
    is_ours: bool
    is_resolved: bool
    is_outdated: bool


@dataclass(frozen=True)
class Reviews:
    """Of one pull request. Everything raises GitHubError."""

    client: GitHubClient
    repository: str
    number: int

    def submit(
        self, *, commit: str | None, body: str, event: Verdict, comments: Sequence[LineComment]
    ) -> dict[str, Any]:
        """Without a commit it is about the pull request's head."""
        fields = {"body": body, "event": event} | ({"commit_id": commit} if commit else {})
        remarks = [comment.model_dump() for comment in comments]
        review: dict[str, Any] = self.client.call("POST", self._path, fields | {"comments": remarks})
        return review

    def list(self) -> Iterator[dict[str, Any]]:
        return self.client.pages(self._path, limit=limits.GITHUB_LISTED)

    def patches(self) -> Iterator[tuple[str, str]]:
        """Of each file whose diff GitHub shows, by its name: remarks can stand there and nowhere else."""
        for file in self.client.pages(f"{self._pull}/files", limit=limits.GITHUB_FILES):
            if patch := file.get("patch"):
                yield file["filename"], patch

    def threads(self) -> Iterator[Thread]:
        owner, _, name = self.repository.partition("/")
        variables: dict[str, Any] = {"owner": owner, "name": name, "number": self.number, "cursor": None}
        for _ in range(limits.GITHUB_LISTED // 100):
            data = self.client.graphql(_THREADS, variables)
            page = data["repository"]["pullRequest"]["reviewThreads"]
            yield from (_thread(node) for node in page["nodes"] if node["comments"]["nodes"])
            if not page["pageInfo"]["hasNextPage"]:
                return
            variables["cursor"] = page["pageInfo"]["endCursor"]

    def open_ours(self) -> frozenset[str]:
        return frozenset(thread.id for thread in self.threads() if thread.is_ours and not thread.is_resolved)

    def resolve(self, thread_id: str) -> None:
        self.client.graphql(_RESOLVE, {"id": thread_id})

    @property
    def _pull(self) -> str:
        return f"/repos/{self.repository}/pulls/{self.number}"

    @property
    def _path(self) -> str:
        return f"{self._pull}/reviews"


def _thread(node: dict[str, Any]) -> Thread:
    first = node["comments"]["nodes"][0]
    return Thread(
        id=node["id"],
        path=node["path"],
        line=node["line"],
        body=first["body"],
        is_ours=first["viewerDidAuthor"],
        is_resolved=node["isResolved"],
        is_outdated=node["isOutdated"],
    )
