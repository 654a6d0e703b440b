"""What a test wants to go wrong, and what was asked."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Failure:
    """The next `count` requests that match are delayed, answered with `status`, or cut off without an answer."""

    path: str = ".*"
    method: str | None = None
    status: int | None = None
    message: str = "Server Error"
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    count: int = 1

    def matches(self, method: str, path: str) -> bool:
        return self.count > 0 and self.method in {None, method} and re.search(self.path, path) is not None


@dataclass(frozen=True)
class Recorded:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    actor: str
    status: int
    at: float = field(default_factory=time.time)


class Failures:
    def __init__(self) -> None:
        self.waiting: list[Failure] = []
        self.calls: list[Recorded] = []

    def take(self, method: str, path: str) -> Failure | None:
        """The first that matches, used up by one."""
        found = next((one for one in self.waiting if one.matches(method, path)), None)
        if found:
            found.count -= 1
        return found
