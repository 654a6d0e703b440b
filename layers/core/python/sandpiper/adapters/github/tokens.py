"""Repository tokens from the one function that holds the App's key, kept until shortly before they run out."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from sandpiper import limits
from sandpiper.errors import Fenced, GitHubError, Unavailable
from sandpiper.models.github import RepositoryToken

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mypy_boto3_lambda import LambdaClient

    from sandpiper.ports import Clock

SPARE = timedelta(seconds=limits.GITHUB_TOKEN_SPARE_SECONDS)
_FAILED = "The function that speaks to GitHub failed. Try again in a moment."
_NEW = timedelta(seconds=limits.GITHUB_NEW_TOKEN_SECONDS)


def is_new(since: datetime, clock: Clock) -> bool:
    """Whether GitHub may not know the token everywhere yet, or not all that it may do."""
    return clock.now() - since < _NEW


class LambdaRepositoryTokens:
    """One attempt of one run asks again and again; whoever gets a token may use it for SPARE at least."""

    def __init__(self, functions: LambdaClient, *, function: str, clock: Clock) -> None:
        self._functions, self._function, self._clock = functions, function, clock
        self._known: dict[tuple[str, int], RepositoryToken] = {}
        self._asking = threading.Lock()

    def token(self, run_id: str, attempt: int) -> RepositoryToken | None:
        """None: the run was not asked for on GitHub. Raises Fenced, GitHubError, Unavailable."""
        with self._asking:
            known = self._known.get((run_id, attempt))
            if known and known.expires_at - self._clock.now() > SPARE:
                return known
            fresh = _token(self._ask({"action": "token", "run_id": run_id, "attempt": attempt}))
            if fresh:
                self._known[run_id, attempt] = fresh
            return fresh

    def resolve(self, run_id: str, attempt: int, threads: Sequence[str]) -> None:
        """Raises Fenced, GitHubError, Unavailable."""
        asked = {"action": "resolve", "run_id": run_id, "attempt": attempt, "threads": list(threads)}
        if error := self._ask(asked).get("error"):
            raise _failure(error)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = self._functions.invoke(FunctionName=self._function, Payload=json.dumps(request).encode())
            body: dict[str, Any] = json.loads(answer["Payload"].read())
        except (BotoCoreError, ClientError) as error:
            raise Unavailable(_FAILED) from error
        if "FunctionError" in answer:
            raise Unavailable(_FAILED)
        return body


def _token(answer: dict[str, Any]) -> RepositoryToken | None:
    if error := answer.get("error"):
        raise _failure(error)
    return RepositoryToken.model_validate(answer) if answer.get("token") else None


def _failure(error: dict[str, Any]) -> Exception:
    if error["type"] == Fenced.type:
        return Fenced(error["message"])
    return GitHubError(error["message"], code=error.get("code", 0), retryable=error.get("retryable", False))
