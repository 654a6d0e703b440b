"""How much may be used of something that runs out."""

from __future__ import annotations


class Quota:
    """Once it is exceeded, what gives something back may go on: only what takes still more exceeds it again."""

    def __init__(self, limit: int, *, slack: int) -> None:
        self._limit, self._slack = limit, slack
        self._ceiling = limit
        self.is_full = False

    def exceeded(self, used: int) -> bool:
        self.is_full = used > self._limit
        self._ceiling = max(self._limit, min(self._ceiling, used))
        if used <= self._ceiling + (self._slack if self._ceiling > self._limit else 0):
            return False
        self._ceiling = used
        return True
