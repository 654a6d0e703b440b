"""Stand-ins for what the sandbox asks of the control plane's GitHub side."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING

from sandpiper.errors import Fenced
from sandpiper.models.github import RepositoryToken

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sandpiper.ports import Clock


class FakeHeadWatch:
    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], str] = {}

    def watch(self, place: str, sha: str, run_id: str) -> None:
        self._runs[place, sha] = run_id

    def watcher(self, place: str, sha: str) -> str | None:
        return self._runs.get((place, sha))


class FakeRepositoryTokens:
    """A new token each time, good for an hour; `current_attempt` is the only one that gets any."""

    def __init__(self, clock: Clock, *, current_attempt: int = 1, tokens: Iterator[str] | None = None) -> None:
        self.clock, self.current_attempt = clock, current_attempt
        self._tokens = tokens or (f"ghs_minted{number:020}" for number in itertools.count(1))
        self.given: list[str] = []
        self.failure: Exception | None = None
        self.resolved: list[str] = []

    def token(self, _run_id: str, attempt: int) -> RepositoryToken | None:
        if attempt != self.current_attempt:
            raise Fenced("Another attempt has taken over this run.")
        if self.failure:
            raise self.failure
        self.given.append(next(self._tokens))
        return RepositoryToken(token=self.given[-1], expires_at=self.clock.now() + timedelta(hours=1))

    def resolve(self, _run_id: str, attempt: int, threads: Sequence[str]) -> None:
        if attempt != self.current_attempt:
            raise Fenced("Another attempt has taken over this run.")
        if self.failure:
            raise self.failure
        self.resolved += threads


class FakeRemarks:
    """Of one pull request: the threads of ours that are open, by id."""

    def __init__(self, *threads: str) -> None:
        self._open = list(threads)
        self.resolved: list[str] = []

    def open_ours(self) -> Collection[str]:
        return [thread for thread in self._open if thread not in self.resolved]

    def resolve(self, thread_id: str) -> None:
        self.resolved.append(thread_id)
