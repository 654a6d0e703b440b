"""The models we know by name: their aliases, what they cost, what they can do, and who stands in for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from sandpiper.models.base import Model as Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandbox_task.model.port import TurnUsage

CLAUDE = {"opus": "claude-opus-5-5", "sonnet": "claude-sonnet-5-5", "haiku": "claude-haiku-5-5"}
BEDROCK = {"mistral-large": "mistral.mistral-large-3-675b-instruct"}
_FALLBACKS = {"claude-opus-5-5": "claude-sonnet-5-5", "claude-sonnet-5-5": "claude-haiku-5-5"}
_MILLION = 1_000_000
# Bedrock asks a tenth more where a request must stay in a region or a group of them.
_REGIONAL = 1.1
_ANTHROPIC_ID = re.compile(r"(?:^|[/.])anthropic\.(claude-[a-z0-9-]+?)(?:-v\d+)?(?::\d+)?$")
_DATE = re.compile(r"-\d{8}$")
_AREA = re.compile(r"^(?:us-gov|global|apac|[a-z]{2})\.")


class Prices(Record):
    """US dollars per million tokens. Tokens of the cache without a price of their own cost what others do."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)

    def dollars(self, usage: TurnUsage) -> float:
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        return (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
        ) / _MILLION


@dataclass(frozen=True)
class Entry:
    """`long` holds for prompts over `long_from` tokens."""

    prices: Prices
    context_tokens: int
    output_tokens: int
    thinks: bool = False  # takes `thinking: adaptive`, and says little without it
    long: Prices | None = None
    long_from: int = 0


# A model that we don't know is taken for a small one: a request that is too large fails, one that is smaller does not.
UNKNOWN = Entry(Prices(input=0, output=0), 128_000, 8_192)


def _claude(prices: tuple[float, float, float, float], *, context: int = 1_000_000, output: int = 128_000) -> Entry:
    return Entry(_prices(*prices), context, output, thinks=context == 1_000_000)


def _prices(put_in: float, out: float, read: float, write: float) -> Prices:
    return Prices(input=put_in, output=out, cache_read=read, cache_write=write)


# As published in October 2026: input, output, read from the cache, written to it for five minutes.
CATALOGUE = {
    "claude-opus-5-5": _claude((4, 20, 0.20, 5)),
    "claude-sonnet-5-5": _claude((2, 10, 0.10, 2.50)),
    "claude-haiku-5-5": Entry(
        _prices(0.10, 0.50, 0.01, 0.125),
        1_000_000,
        128_000,
        thinks=True,
        long=_prices(0.50, 2.50, 0.05, 0.625),
        long_from=100_000,
    ),
    "claude-opus-5": _claude((5, 25, 0.50, 6.25)),
    "claude-sonnet-5": _claude((2, 10, 0.20, 2.50)),
    "claude-opus-4-8": _claude((5, 25, 0.50, 6.25)),
    "claude-sonnet-4-5": _claude((3, 15, 0.30, 3.75), context=200_000, output=64_000),
    "claude-haiku-4-5": _claude((1, 5, 0.10, 1.25), context=200_000, output=64_000),
    "mistral.mistral-large-3-675b-instruct": Entry(Prices(input=0.50, output=1.50), 128_000, 8_192),
}


class PriceList:
    """What a turn costs: by the operator's own prices, else by the catalogue's."""

    def __init__(self, own: Mapping[str, Prices] | None = None) -> None:
        self._own = {CLAUDE.get(name) or BEDROCK.get(name, name): prices for name, prices in (own or {}).items()}

    def knows(self, model: str) -> bool:
        return model in self._own or base_name(model) in self._own or find(model) is not None

    def cost_usd(self, model: str, usage: TurnUsage) -> float:
        """Zero for a model without a known price; the run says so."""
        if own := self._own.get(model) or self._own.get(base_name(model)):
            return round(own.dollars(usage), 8)
        entry = find(model) or UNKNOWN
        prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        prices = entry.long if entry.long and prompt > entry.long_from else entry.prices
        factor = _REGIONAL if is_anthropic_on_bedrock(model) and not model.startswith("global.") else 1
        return round(prices.dollars(usage) * factor, 8)


def find(model: str) -> Entry | None:
    """By any of its names: of the vendor, of Bedrock, of an inference profile."""
    return CATALOGUE.get(base_name(model))


def base_name(model: str) -> str:
    """Without where it runs and which edition it is: the key of the catalogue."""
    if found := _ANTHROPIC_ID.search(model):
        model = found[1]
    return _DATE.sub("", _AREA.sub("", model))


def is_anthropic_on_bedrock(model: str) -> bool:
    return _ANTHROPIC_ID.search(model) is not None


def fallback(model: str) -> str | None:
    """The next smaller one, at the same place; an older or a foreign model has none."""
    base = base_name(model)
    return model.replace(base, _FALLBACKS[base]) if base in _FALLBACKS else None
