from __future__ import annotations

from typing import TYPE_CHECKING

import anthropic
import pytest

from sandpiper_local.scripted_model.runner import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture
def sdk(model: ScriptedModel) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="sk-test-secret", base_url=model.url, max_retries=0) as client:
        yield client
