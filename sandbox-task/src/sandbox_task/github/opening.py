"""A run's hub, put together from its settings and its specification."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from sandbox_task.github.following import Following
from sandbox_task.github.hub import Hub
from sandbox_task.github.pull_diff import PullDiff
from sandbox_task.github.pulling import PullRequests
from sandbox_task.github.reviewing import Reviewing
from sandbox_task.github.status import StatusComment
from sandbox_task.github.tokens import TokenSource
from sandbox_task.github.whereabouts import Whereabouts
from sandbox_task.intents import Intents
from sandbox_task.publishing import told_before
from sandpiper.adapters.github.client import GitHubClient
from sandpiper.adapters.github.pulls import Pulls
from sandpiper.adapters.github.reviews import Reviews
from sandpiper.errors import RunError
from sandpiper.logic.github.places import place_name
from sandpiper.logic.github.status_comment import link_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sandbox_task.redaction import Redactor
    from sandbox_task.reporter import Reporter
    from sandbox_task.settings import Settings
    from sandbox_task.supervisor import Services
    from sandpiper.models.spec import RunSpec

_ELSEWHERE = "the repository is not on the GitHub that this deployment knows."
_NO_TOKEN = "the run has no token for GitHub; send one as X-GitHub-Token."


def repository_name(spec: RunSpec, github_url: str) -> str | None:
    """owner/name on the GitHub that we know."""
    if spec.github:
        return spec.github.repository
    root = f"{github_url.rstrip('/')}/"
    if not spec.repo_url or not spec.repo_url.startswith(root):
        return None
    name = spec.repo_url.removeprefix(root).removesuffix("/").removesuffix(".git")
    return name if name.count("/") == 1 else None


@dataclass(frozen=True)
class Opening:
    settings: Settings
    services: Services
    spec: RunSpec
    reporter: Reporter
    redactor: Redactor
    given: str | None  # the token that came with the request

    def hub(self) -> Hub:
        """Raises RunError if there should be a token and is none."""
        return Hub(
            self.spec,
            self.settings.run_id,
            self._token,
            self._link,
            self.reporter,
            self._intents,
            self._pull_requests(),
            self._client,
            self._reviewing(),
            self._following(),
            self._status(),
            self._moved_to(),
        )

    @cached_property
    def _token(self) -> TokenSource:
        settings, services = self.settings, self.services
        return TokenSource(
            self.given,
            services.tokens,
            settings.run_id,
            settings.attempt,
            clock=services.clock,
            learn=self.redactor.learn,
        )

    @cached_property
    def _name(self) -> str | None:
        return repository_name(self.spec, self.settings.github_url)

    @cached_property
    def _client(self) -> GitHubClient | None:
        return self._connect() if self._name and self._token() else None

    @property
    def _link(self) -> str | None:
        return link_of(self.settings.public_url, self.settings.run_id)

    @property
    def _intents(self) -> Intents:
        settings, services = self.settings, self.services
        return Intents(services.runs, settings.run_id, settings.attempt, services.clock)

    def _told_before(self) -> Collection[str]:
        return told_before(self.services.runs, self.settings.run_id, self.settings.attempt)

    def _connect(self, sleep: Callable[[float], None] = time.sleep) -> GitHubClient:
        return GitHubClient(
            self.settings.github_api_url,
            self._needed_token,
            sleep=sleep,
            may_go_better=lambda _status: self._token.is_new(),
        )

    def _needed_token(self) -> str:
        if (now := self._token()) is None:
            raise RunError("repository_error", "There is no token for GitHub any more.")
        return now

    def _pull_requests(self) -> PullRequests:
        return PullRequests(
            self.spec,
            self.settings.run_id,
            self._link,
            Pulls(self._client, self._name) if self._client and self._name else None,
            _NO_TOKEN if self._name else _ELSEWHERE,
            self._intents,
            self.reporter,
            self._told_before,
        )

    def _reviewing(self) -> Reviewing | None:
        origin, run_id, minted = self.spec.github, self.settings.run_id, self.services.tokens
        if self._client is None or minted is None or origin is None or origin.pull is None:
            return None
        if self.spec.type != "code-review":
            return None
        return Reviewing(
            Reviews(self._client, origin.repository, origin.number),
            PullDiff(origin.pull),
            run_id,
            f"[{run_id}]({self._link})" if self._link else f"`{run_id}`",
            self._intents,
            self.reporter,
            self._told_before,
            partial(minted.resolve, run_id, self.settings.attempt),
        )

    def _moved_to(self) -> Whereabouts | None:
        origin = self.spec.github
        return Whereabouts(self._client, origin, self.settings.github_url) if self._client and origin else None

    def _following(self) -> Following | None:
        """Only where the App is installed: nobody else would wake the run."""
        watch, origin = self.services.watch, self.spec.github
        if self._client is None or origin is None or watch is None:
            return None
        place = place_name(origin)
        return Following(self._client, origin.repository, place, self.settings.run_id, watch, self.reporter)

    def _status(self) -> StatusComment | None:
        origin = self.spec.github
        if origin is None or self._client is None:
            return None
        status = StatusComment(
            self.services.runs,
            self.settings.run_id,
            self.services.clock,
            connect=lambda pause: Pulls(self._connect(pause), origin.repository),
            link=self._link,
            note=self.reporter.note,
        )
        self.reporter.observers.append(status.observe)
        return status
