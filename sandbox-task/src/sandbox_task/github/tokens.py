"""The token for the run's repository: the one that came with the request, else one that is minted and minted again.

An installation's token lives for an hour; a run may live for a day.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.adapters.github.tokens import is_new
from sandpiper.errors import Fenced, RunError, SandpiperError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from sandpiper.github_ports import RepositoryTokens
    from sandpiper.models.github import RepositoryToken
    from sandpiper.ports import Clock

_SPARE = timedelta(seconds=limits.GITHUB_TOKEN_SPARE_SECONDS)


class TokenSource:
    """Called where a token is used. None: the run has none and needs none. Thread-safe."""

    def __init__(
        self,
        given: str | None,
        minted: RepositoryTokens | None,
        run_id: str,
        attempt: int,
        *,
        clock: Clock,
        learn: Callable[[Iterable[str]], None],
    ) -> None:
        self._given, self._minted, self._run_id, self._attempt = given, minted, run_id, attempt
        self._clock, self._learn = clock, learn
        self._lock = threading.Lock()
        self._kept: RepositoryToken | None = None
        self._since: datetime | None = None
        self._has_none = given is None and minted is None

    def __call__(self) -> str | None:
        """Raises RunError if there should be one and is none, Fenced if it is another attempt's by now."""
        if self._given is not None or self._has_none:
            return self._given
        with self._lock:
            return self._current()

    def is_new(self) -> bool:
        """Whether a refusal may come of GitHub not knowing it everywhere yet."""
        return self._since is not None and is_new(self._since, self._clock)

    def _current(self) -> str | None:
        if self._kept is None or self._clock.now() >= self._kept.expires_at - _SPARE:
            self._kept = self._renewed()
        self._has_none = self._kept is None
        return self._kept.token if self._kept else None

    def _renewed(self) -> RepositoryToken | None:
        """One that has not run out yet serves, as long as no new one is to be had."""
        if self._minted is None:
            raise AssertionError("there is nobody to ask")
        try:
            new = self._minted.token(self._run_id, self._attempt)
        except Fenced:
            raise
        except Exception as error:
            if self._kept is not None and self._clock.now() < self._kept.expires_at:
                return self._kept
            raise _no_token(error) from error
        if new is not None:
            self._learn([new.token])
            self._since = self._clock.now()
        return new


def _no_token(error: Exception) -> RunError:
    words = error.message if isinstance(error, SandpiperError) else type(error).__name__
    return RunError("repository_error", f"There is no token for the repository to be had: {words}", retryable=True)
