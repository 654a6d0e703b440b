from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.adapters.github.loopback import Loopback, serving

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def github() -> Iterator[Loopback]:
    with serving() as loopback:
        yield loopback
