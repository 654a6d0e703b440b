from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandpiper.testing.github import FakeHeadWatch, FakeRepositoryTokens
from tests.unit.sandbox.github.stub import StubGitHub

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.sandbox.git_server import GitServer
    from tests.unit.sandbox.world import World


@pytest.fixture
def github() -> Iterator[StubGitHub]:
    with StubGitHub() as github:
        yield github


@pytest.fixture
def hub_world(world: World, git_server: GitServer, github: StubGitHub) -> World:
    """A deployment whose GitHub is the test's git server and the stub."""
    world.settings = {
        "github_url": git_server.url("x").removesuffix("/x.git"),
        "github_api_url": github.url,
        "public_url": "https://console.example",
    }
    world.watch = FakeHeadWatch()
    world.tokens = FakeRepositoryTokens(world.clock)
    return world
