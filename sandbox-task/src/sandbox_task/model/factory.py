"""Which adapter speaks to a model, by its name and by what the deployment says."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from sandbox_task.model import bedrock, catalogue
from sandbox_task.model.anthropic import AnthropicModel, api_client
from sandbox_task.model.catalogue import PriceList
from sandbox_task.model.converse import ConverseModel, converse_client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox_task.model.port import Model
    from sandbox_task.settings import Settings

NO_FALLBACK = "none"
_ANTHROPIC = "https://api.anthropic.com"
_BEDROCK_ID = re.compile(
    r"arn:|(?:(?:us-gov|global|apac|[a-z]{2})\.)?"
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|luma|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen"
    r"|stability|twelvelabs|writer|zai)\."
)


def models_for(name: str, settings: Settings) -> tuple[Model, ...]:
    """The model that was asked for, and after it those that stand in for it, best first."""
    first = model_for(name, settings)
    others = (model_for(other, settings) for other in _fallbacks(first.name, settings.fallback_model))
    return (first, *(other for other in others if other.name != first.name))


def model_for(name: str, settings: Settings) -> Model:
    prices = PriceList(settings.model_prices)
    if is_claude(name) and settings.model_provider == "bedrock":
        name = f"global.anthropic.{catalogue.CLAUDE.get(name, name)}"
    own = _belongs_to_own_server(name, settings)
    if catalogue.is_anthropic_on_bedrock(name) and not own:
        connect = partial(bedrock.anthropic_client, _place(settings))
        return AnthropicModel(name, connect=connect, prices=prices, extra_body=bedrock.VERSION)
    if is_claude(name) or own:
        key, url = settings.anthropic_api_key.get_secret_value(), settings.anthropic_base_url
        connect_api = partial(api_client, api_key=key, base_url=url)
        return AnthropicModel(catalogue.CLAUDE.get(name, name), connect=connect_api, prices=prices)
    connect_converse = partial(converse_client, _place(settings))
    return ConverseModel(catalogue.BEDROCK.get(name, name), connect=connect_converse, prices=prices)


def _place(settings: Settings) -> bedrock.Place:
    return bedrock.Place(settings.aws_region, settings.aws_endpoint_url_bedrock_runtime)


def is_claude(name: str) -> bool:
    return name in catalogue.CLAUDE or name.startswith("claude-")


def _belongs_to_own_server(name: str, settings: Settings) -> bool:
    """A server of one's own may have any model; what is clearly Bedrock's goes there where Bedrock may be used."""
    if not settings.anthropic_base_url or settings.anthropic_base_url.startswith(_ANTHROPIC):
        return False
    return not settings.uses_bedrock or (name not in catalogue.BEDROCK and not _BEDROCK_ID.match(name))


def _fallbacks(name: str, chosen: str | None) -> Iterator[str]:
    if chosen:
        yield from () if chosen == NO_FALLBACK else (chosen,)
        return
    ahead = catalogue.fallback(name)
    while ahead:
        yield ahead
        ahead = catalogue.fallback(ahead)
