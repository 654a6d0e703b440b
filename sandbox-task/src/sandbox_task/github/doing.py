"""What is made on GitHub is made once, also when an answer is lost or the server is away for a while."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.errors import GitHubError

if TYPE_CHECKING:
    from collections.abc import Callable


def made[T](do: Callable[[], T], find: Callable[[], T | None], *, sleep: Callable[[float], None] = time.sleep) -> T:
    """What `do` makes. After a failure that may pass it is looked for first, and only then made again.

    Raises GitHubError.
    """
    for pause in itertools.chain(limits.GITHUB_PAUSES_SECONDS, (None,)):
        try:
            return do()
        except GitHubError as error:
            if pause is None or not error.retryable:
                raise
        sleep(pause)
        if (found := find()) is not None:
            return found
    raise AssertionError("the last try raises or returns")
