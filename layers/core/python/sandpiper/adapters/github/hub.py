"""One repository on GitHub over its REST API, as far as the control plane talks there."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sandpiper import limits
from sandpiper.adapters.github.discussion import Said, said_in_reviews
from sandpiper.errors import GitHubError
from sandpiper.logic.github.conversation import Entry
from sandpiper.models.github import PullRequest, Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sandpiper.adapters.github.client import GitHubClient
    from sandpiper.logic.github.deliveries import Delivery
    from sandpiper.models.github import Author, GitHubOrigin

_STATUS = "<!-- sandpiper:run "
_WRITERS = frozenset({"admin", "write"})  # maintainers count as write, triage as read


class RestHub:
    def __init__(self, client: GitHubClient, repository: str, *, author: Callable[[], Author | None]) -> None:
        self._client, self._repository, self._author = client, repository, author
        self._path = f"/repos/{quote(repository)}"

    def author(self) -> Author | None:
        return self._author()

    def may_write(self, login: str) -> bool:
        try:
            found = self._client.call("GET", f"{self._path}/collaborators/{quote(login, safe='')}/permission")
        except GitHubError as error:
            if error.code == 404:  # no such user any more
                return False
            raise
        return found["permission"] in _WRITERS

    def topic(self, number: int, *, is_pull: bool) -> Topic:
        found = self._client.call("GET", f"{self._path}/{'pulls' if is_pull else 'issues'}/{number}")
        return Topic(
            number=number,
            title=found["title"],
            body=found["body"] or "",
            author=_login(found),
            is_open=found["state"] == "open",
            comments=found["comments"],
            pull=_pull(found) if is_pull else None,
        )

    def said_on(self, topic: Topic, asked: Delivery) -> list[Entry]:
        in_reviews = said_in_reviews(self._client, self._repository, topic.number) if topic.pull else ()
        in_thread = asked.origin == "issue_comment"
        said = [
            *map(_said, (one for one in self._comments(topic.number, topic.comments) if one["id"] != asked.comment_id)),
            # GraphQL has other ids: nobody says two things in one second
            *(one for one in in_reviews if in_thread or (one.entry.author, one.at) != (asked.sender, asked.said_at)),
        ]
        return [each.entry for each in sorted(said, key=itemgetter(0)) if not each.entry.text.startswith(_STATUS)]

    def react(self, target: GitHubOrigin | Delivery, content: str) -> None:
        comment = target.comment_id
        match target.origin:
            case "issue_comment":
                where = f"issues/comments/{comment}"
            case "review_comment":
                where = f"pulls/comments/{comment}"
            case _:  # GitHub has no reactions to a review
                where = f"issues/{target.number}"
        self._client.call("POST", f"{self._path}/{where}/reactions", {"content": content}, repeatable=True)

    def comment(self, number: int, body: str) -> int:
        return int(self._client.call("POST", f"{self._path}/issues/{number}/comments", {"body": body})["id"])

    def edit_comment(self, comment_id: int, body: str) -> None:
        self._client.call("PATCH", f"{self._path}/issues/comments/{comment_id}", {"body": body})

    def comment_text(self, comment_id: int) -> str:
        return str(self._client.call("GET", f"{self._path}/issues/comments/{comment_id}")["body"] or "")

    def find_comment(self, number: int, marker: str) -> int | None:
        """Ours only: anybody could write the marker."""
        count = self._client.call("GET", f"{self._path}/issues/{number}")["comments"]
        for comment in self._comments(number, count):
            if (comment["body"] or "").startswith(marker) and comment["user"]["type"] == "Bot":
                return int(comment["id"])
        return None

    def checks_are_complete(self, sha: str) -> bool:
        """Suites that some App has announced and never begun don't count."""
        path = f"{self._path}/commits/{quote(sha)}/check-suites"
        suites = self._client.pages(path, key="check_suites", limit=limits.GITHUB_LISTED)
        begun = [suite for suite in suites if suite["latest_check_runs_count"]]
        return all(suite["status"] == "completed" for suite in begun)

    def _comments(self, number: int, count: int) -> list[Mapping[str, Any]]:
        """The last ones. GitHub lists them oldest first and no other way."""
        last = -(-count // limits.GITHUB_PAGE)
        query = {"per_page": limits.GITHUB_PAGE}
        pages = [
            self._client.call("GET", f"{self._path}/issues/{number}/comments", query={**query, "page": page})
            for page in range(max(1, last - 1), last + 1)
        ]
        return [comment for page in pages for comment in page][-limits.GITHUB_COMMENTS :]


def _pull(found: Mapping[str, Any]) -> PullRequest:
    head, base = found["head"], found["base"]
    # A fork that was deleted is no repository any more.
    own = head["repo"] is not None and head["repo"]["full_name"] == base["repo"]["full_name"]
    return PullRequest(head_sha=head["sha"], head_ref=head["ref"], base_ref=base["ref"], from_fork=not own)


def _said(comment: Mapping[str, Any]) -> Said:
    return Said(str(comment["created_at"]), Entry(_login(comment), comment["body"] or ""))


def _login(found: Mapping[str, Any]) -> str:
    return found["user"]["login"] if found["user"] else "ghost"
