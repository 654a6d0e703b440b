"""The log of a run, put together from its parts while there is no whole of it, and as it grows."""

from __future__ import annotations

import gzip
import io
import time
from typing import TYPE_CHECKING

from sandpiper_cli.client import TERMINAL, Api
from sandpiper_cli.failures import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandpiper_cli.client import LogPart, Target

LOOK_EVERY_SECONDS = 1.0
_NOT_THERE = 404


def write_log(
    api: Api, run_id: str, target: Target, *, follow: bool, sleep: Callable[[float], None] = time.sleep
) -> int:
    """Returns how many bytes it was. With `follow` until the run has ended, or waits for somebody."""
    if not follow and (whole := api.logs(run_id).whole):
        return api.download(whole, target)
    parts = _as_they_come(api, run_id, sleep) if follow else _so_far(api, run_id, after=None)
    return sum(target.write(_text_of(api, part)) for part in parts)


def _as_they_come(api: Api, run_id: str, sleep: Callable[[float], None]) -> Iterator[LogPart]:
    after = None
    while True:
        rests = api.run(run_id)["status"] in {*TERMINAL.values(), "suspended"}  # before the parts: none comes later
        for part in _so_far(api, run_id, after=after, missing_is_fine=not rests):
            after = part.name
            yield part
        if rests:
            return
        sleep(LOOK_EVERY_SECONDS)


def _so_far(api: Api, run_id: str, *, after: str | None, missing_is_fine: bool = False) -> Iterator[LogPart]:
    try:
        while parts := api.logs(run_id, after=after).parts:
            yield from parts
            after = parts[-1].name
    except ApiError as error:
        if error.status != _NOT_THERE or not missing_is_fine:
            raise


def _text_of(api: Api, part: LogPart) -> bytes:
    content = io.BytesIO()
    api.download(part.link, content)
    return gzip.decompress(content.getvalue())
