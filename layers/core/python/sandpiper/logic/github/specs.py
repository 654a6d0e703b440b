"""A command on GitHub → the RunSpec of its run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.logic.github.conversation import Entry, conversation
from sandpiper.logic.github.deliveries import COMMITTING
from sandpiper.logic.github.grammar import as_seen
from sandpiper.logic.github.markdown import cut
from sandpiper.models.github import GitHubOrigin
from sandpiper.models.spec import READ_ONLY_TASKS, RunSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandpiper.logic.github.deliveries import Delivery
    from sandpiper.logic.repos import RepoRules
    from sandpiper.models.github import Author, Command, PullRequest, Topic
    from sandpiper.models.spec import TaskType

_TYPES: dict[Command, TaskType] = {
    "implement": "feature-implementation",
    "fix": "bug-fix",
    "review": "code-review",
    "test": "test-suite",
}
_BARE_ON_PULL: dict[Command, str] = {
    "implement": "Do what the conversation of this pull request asks for.",
    "fix": "Fix what the conversation and the review remarks of this pull request complain about.",
    "review": "Review this pull request.",
    "test": "Run the tests of this pull request.",
}


def refusal(delivery: Delivery, topic: Topic) -> str | None:
    """Why this can't be done here, in a sentence for the one who asked."""
    if topic.pull is None:
        return "There is no pull request here to review." if delivery.verb == "review" else None
    if not topic.is_open and delivery.verb in COMMITTING:
        return "This pull request is closed, so there is no branch to work on. Comment on an open one, or on an issue."
    if topic.pull.from_fork and delivery.verb in COMMITTING:
        return "This pull request comes from a fork, which I may only read: `/review` and `/test` work here."
    return None


def spec_of(
    delivery: Delivery, topic: Topic, entries: Sequence[Entry], rules: RepoRules, *, author: Author | None
) -> RunSpec:
    command: Command = delivery.verb  # type: ignore[assignment]  # the caller has sorted out the others
    kind = _TYPES[command]
    works = kind not in READ_ONLY_TASKS
    return RunSpec(
        type=kind,
        task=_task(command, delivery, topic),
        context=_context(delivery, topic, entries),
        repo=delivery.repository,
        repo_url=rules.url_of(delivery.repository),
        base=topic.pull.base_ref if topic.pull else delivery.default_branch,
        branch=topic.pull.head_ref if topic.pull and not topic.pull.from_fork else None,
        commit=works,
        create_pr=works and topic.pull is None,
        github=_origin(command, delivery, topic.pull, author),
    )


def _task(command: Command, delivery: Delivery, topic: Topic) -> str:
    if delivery.text:
        return delivery.text
    if topic.pull:
        return _BARE_ON_PULL[command]
    return cut(f"{as_seen(topic.title)}\n\n{as_seen(topic.body)}".strip(), limits.MAX_TASK_CHARS)


def _context(delivery: Delivery, topic: Topic, entries: Sequence[Entry]) -> str:
    about = [Entry(delivery.sender, delivery.text, delivery.path, delivery.hunk)] if delivery.hunk else []
    return conversation(topic.title, Entry(topic.author, topic.body), [*entries, *about])


def _origin(command: Command, delivery: Delivery, pull: PullRequest | None, author: Author | None) -> GitHubOrigin:
    return GitHubOrigin(
        installation_id=delivery.installation_id,
        repository=delivery.repository,
        repository_id=delivery.repository_id,
        number=delivery.number,
        command=command,
        sender=delivery.sender,
        origin=delivery.origin,
        comment_id=delivery.comment_id,
        pull=pull,
        author=author,
    )
