"""The prompt cache as the API keeps and counts it, so that usage and prices in tests and benches are those of the API.

What a mark covers is everything before it: tools, system, messages. At each mark, and at the 19 blocks before it, the
server looks for what an earlier request has marked; the longest that it finds is read, the rest up to the last mark is
written, and what comes after that is ordinary input. An entry lives five minutes from its last use.
"""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from sandpiper_local.scripted_model.conversation import blocks, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

LOOK_BACK = 20
LEAST_TOKENS = 1_024  # of a prefix; some models ask for more
SECONDS = 300


class _Step(NamedTuple):
    """One block of the request, and everything up to its end."""

    key: str
    tokens: int
    is_marked: bool


class PromptCache:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._ends: dict[str, float] = {}

    def usage(self, request: Mapping[str, Any]) -> dict[str, int]:
        """Of this request, which also leaves its marks."""
        steps = list(_steps(request))
        marks = [place for place, step in enumerate(steps) if step.is_marked and step.tokens >= LEAST_TOKENS]
        total = steps[-1].tokens
        read = max((self._found(steps, mark) for mark in marks), default=0)
        covered = steps[marks[-1]].tokens if marks else 0
        self._keep(steps[mark].key for mark in marks)
        return {
            "input_tokens": total - max(read, covered),
            "cache_creation_input_tokens": max(0, covered - read),
            "cache_read_input_tokens": read,
        }

    def _found(self, steps: list[_Step], mark: int) -> int:
        near = reversed(steps[max(0, mark - LOOK_BACK + 1) : mark + 1])
        return next((step.tokens for step in near if self._ends.get(step.key, 0) > self._now()), 0)

    def _keep(self, keys: Iterator[str]) -> None:
        self._ends.update(dict.fromkeys(keys, self._now() + SECONDS))


def _steps(request: Mapping[str, Any]) -> Iterator[_Step]:
    so_far = hashlib.sha256(str(request["model"]).encode())
    tokens = 0
    parts = list(_parts(request))
    for place, (role, block) in enumerate(parts):
        said = json.dumps([role, {key: value for key, value in block.items() if key != "cache_control"}])
        so_far.update(said.encode())
        tokens += estimate_tokens(said)
        is_last = place == len(parts) - 1
        marked = block.get("cache_control") or (is_last and request.get("cache_control"))
        yield _Step(so_far.hexdigest(), tokens, bool(marked))


def _parts(request: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for tool in request.get("tools") or []:
        yield "tools", tool
    for block in blocks(request.get("system") or []):
        yield "system", block
    for message in request["messages"]:
        for block in blocks(message["content"]):
            yield message["role"], block
