"""The models we know by name: their aliases, what they cost, and what they can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox_task.model.port import TurnUsage

ALIASES = {"opus": "claude-opus-5-5", "sonnet": "claude-sonnet-5-5", "haiku": "claude-haiku-5-5"}
_MILLION = 1_000_000


@dataclass(frozen=True)
class Prices:
    """US dollars per million tokens, as published in October 2026."""

    input: float
    output: float
    cache_read: float
    cache_write: float


@dataclass(frozen=True)
class Entry:
    """`long` holds for prompts over `long_from` tokens."""

    prices: Prices
    long: Prices | None = None
    long_from: int = 0


CATALOGUE = {
    "claude-opus-5-5": Entry(Prices(4, 20, 0.20, 5)),
    "claude-sonnet-5-5": Entry(Prices(2, 10, 0.10, 2.50)),
    "claude-haiku-5-5": Entry(Prices(0.10, 0.50, 0.01, 0.125), long=Prices(0.50, 2.50, 0.05, 0.625), long_from=100_000),
}


def full_name(model: str) -> str:
    return ALIASES.get(model, model)


def is_priced(model: str) -> bool:
    return model in CATALOGUE


def cost_usd(model: str, usage: TurnUsage) -> float:
    """Zero for a model without a known price; the run says so."""
    entry = CATALOGUE.get(model)
    if entry is None:
        return 0.0
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    prices = entry.long if entry.long and prompt > entry.long_from else entry.prices
    dollars = (
        usage.input_tokens * prices.input
        + usage.output_tokens * prices.output
        + usage.cache_read_tokens * prices.cache_read
        + usage.cache_write_tokens * prices.cache_write
    ) / _MILLION
    return round(dollars, 8)
