"""All that one GitHub knows, and how its things are found."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sandpiper_local.fake_github.errors import not_found
from sandpiper_local.fake_github.git_store import GitStore
from sandpiper_local.fake_github.state import App, Installation, Issue, Kind, Label, Repository, Token, User

if TYPE_CHECKING:
    from pathlib import Path

    from sandpiper_local.fake_github.failures import Failures
    from sandpiper_local.fake_github.webhooks import Webhooks

TOKEN_SECONDS = 3600


class Clock:
    """The fake's own: tokens run out by it, so that a test can let an hour pass."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return (datetime.now(UTC) + self.ahead).replace(microsecond=0)

    def advance(self, seconds: float) -> None:
        self.ahead += timedelta(seconds=seconds)


@dataclass
class Hub:
    root: Path
    failures: Failures
    webhooks: Webhooks
    url: str = ""
    token_seconds: int = TOKEN_SECONDS
    clock: Clock = field(default_factory=Clock)
    users: dict[str, User] = field(default_factory=dict)
    repositories: dict[str, Repository] = field(default_factory=dict)
    renamed: dict[str, Repository] = field(default_factory=dict)
    installations: dict[int, Installation] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    app: App | None = None
    _pushing: dict[int, asyncio.Lock] = field(default_factory=dict)
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1001))

    @property
    def api_url(self) -> str:
        return f"{self.url}/api/v3"

    def new_id(self) -> int:
        return next(self._ids)

    def pushing(self, repository: Repository) -> asyncio.Lock:
        """Held while a push comes in and until all that follows from it is known."""
        return self._pushing.setdefault(repository.id, asyncio.Lock())

    def user(self, login: str, kind: Kind = "User") -> User:
        """Known from the first time that somebody speaks of them."""
        if login not in self.users:
            self.users[login] = User(self.new_id(), login, kind)
        return self.users[login]

    def email_of(self, user: User) -> str:
        """The address by which GitHub knows whose commit it is, and which nobody else can have."""
        return f"{user.id}+{user.login}@users.noreply.{urlsplit(self.url).hostname}"

    def user_by_email(self, email: str) -> User | None:
        return next((user for user in self.users.values() if self.email_of(user) == email), None)

    def add_repository(self, full_name: str, *, private: bool, default_branch: str = "main") -> Repository:
        owner, _, name = full_name.partition("/")
        repository = self._repository(owner, name, private=private, default_branch=default_branch)
        repository.git.create(default_branch)
        self.repositories[full_name] = repository
        return repository

    def fork(self, source: Repository, owner: str) -> Repository:
        fork = self._repository(owner, source.name, private=source.private, default_branch=source.default_branch)
        fork.fork_of = source
        fork.git.copy_from(source.git.path)
        self.repositories[fork.full_name] = fork
        return fork

    def _repository(self, owner: str, name: str, *, private: bool, default_branch: str) -> Repository:
        number = self.new_id()
        return Repository(
            id=number,
            owner=self.user(owner, "Organization"),
            name=name,
            git=GitStore(self.root / f"{number}.git"),  # by number, so that it can be renamed
            created_at=self.clock.now(),
            private=private,
            default_branch=default_branch,
        )

    def rename(self, repository: Repository, name: str) -> None:
        self.renamed[repository.full_name] = self.repositories.pop(repository.full_name)
        repository.name = name
        self.repositories[repository.full_name] = repository

    def repository(self, full_name: str) -> Repository:
        if found := self.repositories.get(full_name):
            return found
        raise not_found()

    def label(self, repository: Repository, name: str) -> Label:
        return repository.labels.setdefault(name, Label(self.new_id(), name))

    def next_number(self, repository: Repository) -> int:
        return max(repository.issues, default=0) + 1

    def issue(self, repository: Repository, number: int) -> Issue:
        if found := repository.issues.get(number):
            return found
        raise not_found()

    def installation_for(self, repository: Repository) -> Installation | None:
        covering = (one for one in self.installations.values() if covers(one, repository))
        return next(covering, None)

    def issue_token(
        self,
        user: User,
        *,
        prefix: str,
        installation: Installation | None = None,
        permissions: dict[str, str] | None = None,
        repositories: list[Repository] | None = None,
    ) -> Token:
        expires = self.clock.now() + timedelta(seconds=self.token_seconds) if installation else None
        # longer than 40 characters, as GitHub's are by now: nobody may rely on their form
        value = f"{prefix}_{secrets.token_hex(48)}"
        token = Token(value, user, installation, permissions, repositories, expires)
        self.tokens[value] = token
        return token


def covers(installation: Installation, repository: Repository) -> bool:
    if installation.all_repositories:
        return repository.owner is installation.account
    return repository in installation.repositories
