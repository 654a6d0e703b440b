"""What is said in the reviews of a pull request and is not settled: by GraphQL, because REST does not say what is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sandpiper.logic.github.conversation import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sandpiper.adapters.github.client import GitHubClient

_QUERY = """
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviews(last: 100) { nodes { author { login } body submittedAt } }
    reviewThreads(last: 100) { nodes { isResolved path line originalLine
      comments(first: 50) { nodes { author { login } body createdAt diffHunk } } } }
  } }
}
"""


class Said(NamedTuple):
    at: str
    entry: Entry


def said_in_reviews(client: GitHubClient, repository: str, number: int) -> Iterator[Said]:
    """In no order. Raises GitHubError."""
    owner, _, name = repository.partition("/")
    data = client.graphql(_QUERY, {"owner": owner, "name": name, "number": number})
    pull = data["repository"]["pullRequest"]
    for review in pull["reviews"]["nodes"]:
        if review["body"] and review["submittedAt"]:
            yield Said(review["submittedAt"], Entry(_login(review), review["body"]))
    for thread in pull["reviewThreads"]["nodes"]:
        if not thread["isResolved"]:
            yield from _thread(thread)


def _thread(thread: Mapping[str, Any]) -> Iterator[Said]:
    """Its part of the diff stands with the first words only."""
    line = thread["line"] or thread["originalLine"]
    about = f"{thread['path']}:{line}" if line else str(thread["path"])
    for n, comment in enumerate(thread["comments"]["nodes"]):
        hunk = "" if n else comment["diffHunk"] or ""
        yield Said(comment["createdAt"], Entry(_login(comment), comment["body"] or "", about, hunk))


def _login(found: Mapping[str, Any]) -> str:
    return found["author"]["login"] if found["author"] else "ghost"
