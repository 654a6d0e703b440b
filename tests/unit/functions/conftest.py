from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING

import pytest

from api.app import app
from api.handler import logger
from api.requests import current_world
from tests.unit.functions.support import Api

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "sandpiper-test")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Sandpiper")


@pytest.fixture
def api() -> Iterator[Api]:
    made = Api()
    app.dependency_overrides[current_world] = lambda: made.world
    yield made
    app.dependency_overrides.clear()


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the functions log. Powertools' Logger holds on to the stdout it was made with, so pytest can't see it."""
    handler, stream = logger.registered_handler, io.StringIO()
    assert isinstance(handler, logging.StreamHandler)
    before = handler.setStream(stream)
    yield stream
    handler.setStream(before)
