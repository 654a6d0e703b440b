"""What the rules need of GitHub. Adapters implement these; fakes in `testing/` do too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sandpiper.logic.github.conversation import Entry
    from sandpiper.logic.github.deliveries import Delivery
    from sandpiper.models.github import Author, GitHubOrigin, RepositoryToken, Topic
    from sandpiper.models.run import Run


@dataclass(frozen=True)
class Hold:
    """`again`: somebody has had it before, and may have got anywhere with it."""

    again: bool


class RepositoryTokens(Protocol):
    """Minted by the one function that holds the App's key, for the run's own repository and no more than it needs."""

    def token(self, run_id: str, attempt: int) -> RepositoryToken | None:
        """None: the run was not asked for on GitHub. Raises Fenced if the attempt is not the current one."""

    def resolve(self, run_id: str, attempt: int, threads: Sequence[str]) -> None:
        """What no token of a review may: see `resolving`. Raises Fenced, GitHubError, Unavailable."""


class Remarks(Protocol):
    """Of one pull request. Everything raises GitHubError."""

    def open_ours(self) -> Collection[str]:
        """The ids of the threads that we have begun and nobody has resolved."""

    def resolve(self, thread_id: str) -> None: ...


class Hub(Protocol):
    """One repository on GitHub, as the App sees it. Everything raises GitHubError."""

    def may_write(self, login: str) -> bool: ...

    def author(self) -> Author | None:
        """The App's own account, if it can be had."""

    def topic(self, number: int, *, is_pull: bool) -> Topic: ...

    def said_on(self, topic: Topic, asked: Delivery) -> list[Entry]:
        """The last comments and, of a pull request, reviews and open remarks, oldest first; no status comment, and not
        what was asked itself."""

    def react(self, target: GitHubOrigin | Delivery, content: str) -> None:
        """To the comment, or to the issue where that has no reactions. Safe to repeat."""

    def comment(self, number: int, body: str) -> int:
        """Its id. Not safe to repeat: see `find_comment`."""

    def edit_comment(self, comment_id: int, body: str) -> None: ...

    def comment_text(self, comment_id: int) -> str: ...

    def find_comment(self, number: int, marker: str) -> int | None: ...

    def checks_are_complete(self, sha: str) -> bool: ...


class Topics(Protocol):
    """Which run an issue or a pull request is about: the last one that was asked for there, or has opened it."""

    def note(self, run: Run) -> None:
        """Safe to repeat; a later run is not replaced by an earlier one."""

    def latest(self, place: str, number: int) -> str | None:
        """`place` is the repository's: see `places`."""


class Holds(Protocol):
    """Who works on something that is to be done once, for a while."""

    def take(self, name: str, *, seconds: int) -> Hold | None:
        """None: somebody else has it, or it is done."""

    def release(self, name: str, *, done: bool) -> None:
        """What is not done may be taken again at once."""


class HeadWatch(Protocol):
    """Which run waits for what CI says about a commit."""

    def watch(self, place: str, sha: str, run_id: str) -> None:
        """`place` is the repository's: see `places`. Safe to repeat."""

    def watcher(self, place: str, sha: str) -> str | None:
        """The run's id, which may have ended meanwhile."""


class Tip(NamedTuple):
    """The newest commit of a branch."""

    sha: str
    tree: str
    message: str


class CommitTarget(Protocol):
    """One repository that takes a commit. Everything raises GitHubError."""

    def default_branch(self) -> str: ...

    def tip(self, branch: str) -> Tip | None:
        """None: there is no such branch."""

    def tree(self, base: str, files: Mapping[str, bytes | None]) -> str:
        """The tree `base` with these files, None takes one away; what is away already stays away."""

    def commit(self, message: str, *, tree: str, parent: str) -> str:
        """On no branch yet."""

    def create_branch(self, branch: str, sha: str) -> None:
        """Raises Conflict if it exists by now."""

    def move_branch(self, branch: str, sha: str) -> None:
        """Forward only. Raises Conflict if it has moved, or may not be written."""

    def url_of(self, sha: str) -> str: ...

    def open_pull(self, branch: str, base: str) -> str | None:
        """The URL of the open pull request, if there is one."""

    def create_pull(self, branch: str, base: str, *, title: str, body: str) -> str:
        """Its URL."""
