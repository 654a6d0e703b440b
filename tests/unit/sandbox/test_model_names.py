"""Names, prices and stand-ins: which model is meant, who speaks to it, what it costs."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from pydantic import ValidationError

from sandbox_task.model.anthropic import AnthropicModel
from sandbox_task.model.catalogue import PriceList, Prices, find
from sandbox_task.model.converse import ConverseModel
from sandbox_task.model.factory import model_for, models_for
from sandbox_task.model.port import TurnUsage
from sandbox_task.settings import read_settings
from sandpiper.models.requests import MODEL_PATTERN
from tests.unit.sandbox.models import settings

VENDOR, OWN = "https://api.anthropic.com", "http://127.0.0.1:9"
PROFILE = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-5-5"
ENVIRONMENT = {
    "RUN_ID": "r",
    "ATTEMPT": "1",
    "TASK_TOKEN": "t",
    "RUNS_TABLE": "r",
    "EVENTS_TABLE": "e",
    "ARTIFACTS_BUCKET": "b",
    "RUN_SECRETS_KEY_ID": "k",
}


@pytest.mark.parametrize(
    ("name", "provider", "url", "adapter", "meant"),
    [
        ("opus", "anthropic", VENDOR, "api", "claude-opus-5-5"),
        ("claude-sonnet-4-5", "anthropic", VENDOR, "api", "claude-sonnet-4-5"),
        ("haiku", "bedrock", VENDOR, "bedrock", "global.anthropic.claude-haiku-5-5"),
        ("claude-opus-5-5", "bedrock", VENDOR, "bedrock", "global.anthropic.claude-opus-5-5"),
        ("us.anthropic.claude-opus-5-5", "anthropic", VENDOR, "bedrock", "us.anthropic.claude-opus-5-5"),
        ("anthropic.claude-opus-4-6-v1", "anthropic", OWN, "bedrock", "anthropic.claude-opus-4-6-v1"),
        (PROFILE, "anthropic", VENDOR, "bedrock", PROFILE),
        ("mistral-large", "anthropic", VENDOR, "converse", "mistral.mistral-large-3-675b-instruct"),
        ("us.amazon.nova-pro-v1:0", "anthropic", OWN, "converse", "us.amazon.nova-pro-v1:0"),
        ("some-model", "anthropic", VENDOR, "converse", "some-model"),
        ("some-model", "anthropic", OWN, "api", "some-model"),
        ("qwen2.5-coder", "bedrock", OWN, "api", "qwen2.5-coder"),
        ("mistral-large", "anthropic", OWN, "converse", "mistral.mistral-large-3-675b-instruct"),
    ],
)
def test_a_name_finds_its_adapter(name: str, provider: str, url: str, adapter: str, meant: str) -> None:
    assert re.match(MODEL_PATTERN, name)
    model = model_for(name, settings(url, model_provider=provider))
    kinds = {"api": (AnthropicModel, False), "bedrock": (AnthropicModel, True), "converse": (ConverseModel, False)}
    assert (type(model), bool(getattr(model, "_extra_body", None))) == kinds[adapter]
    assert model.name == meant


@pytest.mark.parametrize("name", ["mistral-large", "us.amazon.nova-pro-v1:0", "anthropic.claude-opus-4-6-v1"])
def test_where_bedrock_may_not_be_used_a_server_of_ones_own_gets_every_name_as_it_is(name: str) -> None:
    model = model_for(name, settings(OWN, allow_bedrock=False))
    assert (type(model), model.name) == (AnthropicModel, name)


@pytest.mark.parametrize(
    ("name", "more", "names"),
    [
        ("opus", {}, ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"]),
        ("sonnet", {}, ["claude-sonnet-5-5", "claude-haiku-5-5"]),
        ("haiku", {}, ["claude-haiku-5-5"]),
        ("eu.anthropic.claude-sonnet-5-5", {}, ["eu.anthropic.claude-sonnet-5-5", "eu.anthropic.claude-haiku-5-5"]),
        ("sonnet", {"fallback_model": "none"}, ["claude-sonnet-5-5"]),
        ("sonnet", {"fallback_model": "opus"}, ["claude-sonnet-5-5", "claude-opus-5-5"]),
        ("sonnet", {"fallback_model": "sonnet"}, ["claude-sonnet-5-5"]),
        ("mistral-large", {}, ["mistral.mistral-large-3-675b-instruct"]),
    ],
)
def test_smaller_models_of_the_same_place_stand_in(name: str, more: dict[str, str], names: list[str]) -> None:
    assert [model.name for model in models_for(name, settings(VENDOR, **more))] == names


def test_a_turn_is_priced_by_kind_of_token() -> None:
    usage = TurnUsage(input_tokens=1000, output_tokens=1000, cache_read_tokens=10_000, cache_write_tokens=1000)
    assert PriceList().cost_usd("claude-sonnet-5-5", usage) == pytest.approx(0.002 + 0.01 + 0.001 + 0.0025)
    assert PriceList().cost_usd("unknown", usage) == 0


def test_a_long_prompt_is_priced_as_one() -> None:
    short, long = TurnUsage(input_tokens=100_000), TurnUsage(input_tokens=100_001)
    assert PriceList().cost_usd("claude-haiku-5-5", short) == pytest.approx(0.01)
    assert PriceList().cost_usd("claude-haiku-5-5", long) == pytest.approx(0.0500005)


@pytest.mark.parametrize(
    ("name", "dollars"),
    [("global.anthropic.claude-sonnet-5-5", 2), ("us.anthropic.claude-sonnet-5-5", 2.2), (PROFILE, 2.2)],
)
def test_bedrock_asks_a_tenth_more_for_staying_in_a_region(name: str, dollars: float) -> None:
    assert PriceList().cost_usd(name, TurnUsage(input_tokens=1_000_000)) == pytest.approx(dollars)


def test_a_model_is_known_by_all_its_names() -> None:
    names = ("claude-haiku-4-5", "claude-haiku-4-5-20251001", "eu.anthropic.claude-haiku-4-5-20251001-v1:0")
    assert len({id(find(name)) for name in names}) == 1
    assert find("acme-1") is None


def test_the_operators_prices_come_before_ours() -> None:
    prices = PriceList({"sonnet": Prices(input=7, output=0), "acme.one": Prices(input=1, output=1)})
    million = TurnUsage(input_tokens=1_000_000)
    assert prices.cost_usd("claude-sonnet-5-5", million) == 7
    assert prices.cost_usd("us.anthropic.claude-sonnet-5-5", million) == 7
    assert prices.cost_usd("acme.one", TurnUsage(cache_read_tokens=1_000_000)) == 1
    assert (prices.knows("acme.one"), prices.knows("acme.two")) == (True, False)


def test_prices_are_read_from_the_environment() -> None:
    one = '{"acme.one": {"input": 1, "output": 2, "cache_read": 0.1, "cache_write": 1.25}}'
    read = read_settings({**ENVIRONMENT, "MODEL_PRICES": one})
    assert read.model_prices["acme.one"].cache_write == 1.25
    assert read_settings({**ENVIRONMENT, "MODEL_PRICES": "", "FALLBACK_MODEL": ""}).model_prices == {}


@pytest.mark.parametrize("wrong", ["{", "[]", '{"m": 1}', '{"m": {"input": -1, "output": 1}}', '{"m": {"inptu": 1}}'])
def test_prices_that_are_wrong_are_named_at_the_start(wrong: str) -> None:
    with pytest.raises(ValidationError, match="model_prices"):
        read_settings({**ENVIRONMENT, "MODEL_PRICES": wrong})


def test_choosing_a_model_imports_no_sdk() -> None:
    """They take a second; only the one that is used is paid for, when it is."""
    code = "import sys, sandbox_task.model.factory; print({'anthropic', 'boto3', 'botocore'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
