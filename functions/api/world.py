"""What the routes work with."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.health import Health
    from api.idempotency import Idempotency
    from sandpiper.logic.control import Controls
    from sandpiper.logic.line import Line
    from sandpiper.logic.quotas import QuotaRules
    from sandpiper.logic.repos import RepoRules
    from sandpiper.logic.start_run import Starter
    from sandpiper.ports import Blobs, Clock, Connections, Runs


@dataclass(frozen=True)
class World:
    runs: Runs
    starter: Starter
    controls: Controls
    blobs: Blobs
    connections: Connections
    idempotency: Callable[[], Idempotency]
    health: Health
    repo_rules: RepoRules
    websocket_url: str
    version: str
    clock: Clock
    quotas: QuotaRules
    line: Line
    github_api_url: str = "https://api.github.com"
    sleep: Callable[[float], None] = time.sleep


@functools.cache
def world() -> World:
    # What talks to AWS is loaded and wired when the first request asks for it, as botocore is (ADR 5).
    from api.wiring import wired  # noqa: PLC0415

    return wired()
