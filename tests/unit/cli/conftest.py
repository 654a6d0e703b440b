from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.fake_api import FakeApi

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as running:
        yield running


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SANDPIPER_ENDPOINT", "SANDPIPER_TOKEN", "SANDPIPER_GITHUB_TOKEN", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SANDPIPER_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "100")
