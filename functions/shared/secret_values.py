"""Values of Secrets Manager, read again every few minutes, so that a changed one is taken up without a deployment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.adapters.aws import client

if TYPE_CHECKING:
    from collections.abc import Callable


class SecretValue:
    def __init__(self, arn: str, now: Callable[[], float] = time.monotonic) -> None:
        self._arn, self._now = arn, now
        self._known: tuple[float, str] | None = None

    def __call__(self) -> str:
        if self._known is None or self._now() - self._known[0] >= limits.GITHUB_SECRET_SECONDS:
            value = client("secretsmanager").get_secret_value(SecretId=self._arn)["SecretString"]
            self._known = (self._now(), value)
        return self._known[1]
