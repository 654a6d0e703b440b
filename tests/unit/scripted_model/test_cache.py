"""The prompt cache counts as the API does."""

from __future__ import annotations

from typing import Any

import pytest

from sandpiper_local.scripted_model.cache import LOOK_BACK, SECONDS, PromptCache

MARK = {"cache_control": {"type": "ephemeral"}}
LONG = "word " * 1200  # 1,500 tokens


class Clock:
    time = 0.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> PromptCache:
    return PromptCache(clock)


def text(words: str, *, mark: bool = False) -> dict[str, Any]:
    return {"type": "text", "text": words} | (MARK if mark else {})


def request(*blocks: dict[str, Any], model: str = "m", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": list(blocks)}], **more}


def counted(usage: dict[str, int]) -> tuple[bool, bool]:
    """Whether something was written, and whether something was read."""
    return bool(usage["cache_creation_input_tokens"]), bool(usage["cache_read_input_tokens"])


def test_without_a_mark_all_is_input(cache: PromptCache) -> None:
    usage = cache.usage(request(text(LONG)))
    assert counted(usage) == (False, False)
    assert usage["input_tokens"] > 1000


def test_what_is_marked_is_written_once_and_then_read(cache: PromptCache) -> None:
    first = cache.usage(request(text(LONG, mark=True), text("tail")))
    again = cache.usage(request(text(LONG, mark=True), text("another tail")))
    assert first["cache_creation_input_tokens"] == again["cache_read_input_tokens"] > 1000
    assert counted(again) == (False, True)
    assert again["input_tokens"] < 50


def test_too_little_is_not_cached(cache: PromptCache) -> None:
    assert [counted(cache.usage(request(text("few", mark=True)))) for _ in range(2)] == [(False, False)] * 2


@pytest.mark.parametrize("changed", ["tools", "system", "model"])
def test_what_comes_before_the_mark_must_be_the_same(cache: PromptCache, changed: str) -> None:
    base: dict[str, Any] = {"tools": [{"name": "a"}], "system": "s", "model": "m"}
    other = base | {changed: [{"name": "b"}] if changed == "tools" else "x"}
    cache.usage(request(text(LONG, mark=True), **base))
    assert counted(cache.usage(request(text(LONG, mark=True), **other))) == (True, False)


def test_where_the_marks_are_makes_no_other_prompt(cache: PromptCache) -> None:
    cache.usage(request(text(LONG, mark=True)))
    assert counted(cache.usage(request(text(LONG), text("new", mark=True)))) == (True, True)


@pytest.mark.parametrize(("more", "found"), [(LOOK_BACK - 1, True), (LOOK_BACK, False)])
def test_twenty_blocks_before_a_mark_are_looked_at(cache: PromptCache, more: int, *, found: bool) -> None:
    cache.usage(request(text(LONG, mark=True)))
    added = [text(f"block {n}") for n in range(more - 1)]
    usage = cache.usage(request(text(LONG), *added, text("end", mark=True)))
    assert counted(usage) == (True, found)


def test_an_entry_lives_five_minutes_from_its_last_use(cache: PromptCache, clock: Clock) -> None:
    ask = request(text(LONG, mark=True))
    cache.usage(ask)
    clock.time = SECONDS - 1
    assert counted(cache.usage(ask)) == (False, True)
    clock.time = 2 * SECONDS - 2
    assert counted(cache.usage(ask)) == (False, True)
    clock.time = 4 * SECONDS
    assert counted(cache.usage(ask)) == (True, False)


def test_a_mark_on_the_request_is_one_on_its_last_block(cache: PromptCache) -> None:
    assert counted(cache.usage(request(text(LONG), **MARK))) == (True, False)
