"""What follows when branches have moved, whoever moved them: events, and pull requests that go with their branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper_local.fake_github.check_suites import request_suite
from sandpiper_local.fake_github.git_store import ZERO
from sandpiper_local.fake_github.views.git import pushed_commit_view
from sandpiper_local.fake_github.views.pulls import pull_of, pull_view

if TYPE_CHECKING:
    from sandpiper_local.fake_github.hub import Hub
    from sandpiper_local.fake_github.state import Issue, Repository, User


def pull_ref(issue: Issue) -> str:
    return f"refs/pull/{issue.number}/head"


def after_push(hub: Hub, repository: Repository, before: dict[str, str], sender: User) -> None:
    """`before`: where the branches were."""
    after = repository.git.refs()
    for ref in sorted(before.keys() | after.keys()):
        old, new = before.get(ref, ZERO), after.get(ref, ZERO)
        if old != new:
            _tell_push(hub, repository, ref, (old, new), sender)
            _move_pulls(hub, repository, ref, new, sender)
            if new != ZERO:
                request_suite(hub, repository, new, sender)


def _tell_push(hub: Hub, repository: Repository, ref: str, moved: tuple[str, str], sender: User) -> None:
    old, new = moved
    base = old if old != ZERO else None
    shas = [] if new == ZERO else repository.git.commits_between(base, new) if base else [new]
    commits = [pushed_commit_view(hub, repository, sha) for sha in shas]
    forced = base is not None and new != ZERO and not repository.git.is_ancestor(base, new)
    page = f"{hub.url}/{repository.full_name}/compare/{old[:12]}...{new[:12]}"
    pusher = {"name": sender.login, "email": hub.email_of(sender)}
    hub.webhooks.emit(
        hub, "push", None, repository, sender, ref=ref, before=old, after=new, commits=commits, compare=page,
        head_commit=commits[-1] if commits else None, created=old == ZERO, deleted=new == ZERO, forced=forced,
        base_ref=None, pusher=pusher,
    )  # fmt: skip


def _move_pulls(hub: Hub, repository: Repository, ref: str, new: str, sender: User) -> None:
    homes = [one for one in hub.repositories.values() if one is repository or repository.fork_of is one]
    for home in homes:
        for issue in [one for one in home.pulls if one.state == "open"]:
            pull = pull_of(issue)
            if pull.head_repo is repository and ref == f"refs/heads/{pull.head_ref}":
                _move_pull(hub, home, issue, new, sender)


def _move_pull(hub: Hub, home: Repository, issue: Issue, new: str, sender: User) -> None:
    pull = pull_of(issue)
    if new == ZERO:  # GitHub closes what has lost its branch
        close(hub, home, issue, sender)
        return
    before, pull.head_sha = pull.head_sha, new
    issue.updated_at = hub.clock.now()
    keep_head(home, issue)
    tell_pull(hub, home, issue, "synchronize", sender, before=before, after=new)


def keep_head(home: Repository, issue: Issue) -> None:
    """The head stays reachable in the repository that is asked to take it, also when it comes from a fork."""
    pull = pull_of(issue)
    if pull.head_repo and pull.head_repo is not home:
        home.git.fetch(pull.head_repo.git, f"refs/heads/{pull.head_ref}", pull_ref(issue))
    else:
        home.git.update_ref(pull_ref(issue), pull.head_sha)


def close(hub: Hub, repository: Repository, issue: Issue, sender: User) -> None:
    issue.state, issue.closed_at, issue.closed_by = "closed", hub.clock.now(), sender
    issue.updated_at = hub.clock.now()
    if issue.pull:
        tell_pull(hub, repository, issue, "closed", sender)


def tell_pull(hub: Hub, repository: Repository, issue: Issue, action: str, sender: User, **more: str) -> None:
    view = pull_view(hub, repository, issue)
    hub.webhooks.emit(
        hub, "pull_request", action, repository, sender, number=issue.number, pull_request=view, **more
    )  # fmt: skip
