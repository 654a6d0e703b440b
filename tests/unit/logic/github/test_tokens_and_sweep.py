"""Who gets a token and for what, and which deliveries are asked for again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.errors import Fenced, GitHubError, NotFound
from sandpiper.logic.github.minting import Minter
from sandpiper.logic.github.permissions import permissions_for
from sandpiper.logic.github.sweep import Sweep, Swept, to_redeliver
from sandpiper.models.github import RepositoryToken
from sandpiper.models.run import RunResult
from sandpiper.models.spec import READ_ONLY_TASKS
from tests.unit.logic.github.hub_world import BUSY, OWNER, SPEC
from tests.unit.logic.world import World

if TYPE_CHECKING:
    from sandpiper.logic.github.places import Place


class Mint:
    def __init__(self, world: World) -> None:
        self.asked: list[tuple[int, str, Any]] = []
        self.minter = Minter(world.runs, self)
        self._token = RepositoryToken(token="ghs_x", expires_at=world.clock.now() + timedelta(hours=1))

    def __call__(self, place: Place, permissions: Any) -> RepositoryToken:
        self.asked.append((place.installation_id, place.repository, permissions))
        return self._token


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("kind", ["feature-implementation", "bug-fix", "code-review", "test-suite"])
def test_a_run_at_work_gets_a_token_for_its_own_repository_and_no_more_than_it_needs(world: World, kind: Any) -> None:
    mint = Mint(world)
    run_id = world.running(OWNER, SPEC.model_copy(update={"type": kind}))
    assert mint.minter.token(run_id, 1) is not None
    assert mint.asked == [(42, "acme/shop", permissions_for(kind))]


@pytest.mark.parametrize("kind", sorted(READ_ONLY_TASKS))
def test_who_only_reads_may_not_write_contents(kind: Any) -> None:
    assert permissions_for(kind)["contents"] == "read"


def test_a_run_that_was_asked_for_by_https_gets_none(world: World) -> None:
    mint = Mint(world)
    assert mint.minter.token(world.running(), 1) is None
    assert not mint.asked


def test_another_attempt_gets_none(world: World) -> None:
    run_id = world.running(OWNER, SPEC)
    for attempt in (0, 2):
        with pytest.raises(Fenced):
            Mint(world).minter.token(run_id, attempt)


def test_a_run_that_has_no_sandbox_gets_none(world: World) -> None:
    mint, run_id = Mint(world), world.running(OWNER, SPEC)
    world.suspend(run_id, RunResult(outcome="suspended", suspend_reason="paused"))
    with pytest.raises(Fenced):
        mint.minter.token(run_id, 1)
    assert not mint.asked


def test_a_run_that_is_not_there_gets_none(world: World) -> None:
    with pytest.raises(NotFound):
        Mint(world).minter.token("run-x", 1)


def tried(world: World, *codes: int, minutes: int = 10, guid: str = "g") -> list[dict[str, Any]]:
    moment = (world.clock.now() - timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")
    return [{"id": n, "guid": guid, "status_code": code, "delivered_at": moment} for n, code in enumerate(codes, 1)]


@pytest.mark.parametrize(
    ("codes", "minutes", "asked"),
    [
        ((502,), 10, [1]),
        ((0,), 10, [1]),
        ((401,), 10, [1]),
        ((503, 502), 20, []),
        ((503, 502), 31, [1]),
        ((503, 502, 504), 119, []),
        ((503, 502, 504), 121, [1]),
        ((503, 502, 504, 500, 500), 60 * 20, [1]),
        ((503, 502, 504, 500, 500, 500), 60 * 70, []),
        ((202,), 10, []),
        ((202, 502), 10, []),
        ((400,), 10, []),
        ((413,), 10, []),
        ((502,), 60 * 24 * 4, []),
    ],
)
def test_what_never_arrived_is_asked_for_again_a_few_times_ever_more_seldom(
    world: World, codes: tuple[int, ...], minutes: int, asked: list[int]
) -> None:
    assert to_redeliver(tried(world, *codes, minutes=minutes), world.clock.now()) == asked


def test_a_sweep_asks_once_for_every_lost_event(world: World) -> None:
    listed = [*tried(world, 502, guid="a"), *tried(world, 502, 502, guid="b"), *tried(world, 200, guid="c")]
    asked: list[int] = []
    sweep = Sweep(lambda limit: listed[:limit], asked.append, world.clock)
    world.clock.advance(3600)
    assert sweep.run() == Swept(redelivered=2, refused=0)
    assert asked == [1, 1]


def test_what_github_will_not_send_again_holds_up_nothing_else(world: World) -> None:
    listed = [*tried(world, 502, guid="a"), *tried(world, 502, guid="b")]
    asked: list[int] = []

    def redeliver(delivery_id: int) -> None:
        asked.append(delivery_id)
        if len(asked) == 1:
            raise GitHubError("GitHub answered with 422: too old", code=422)

    assert Sweep(lambda limit: listed[:limit], redeliver, world.clock).run() == Swept(redelivered=1, refused=1)
    assert asked == [1, 1]


def test_a_github_that_is_away_is_asked_again_at_the_next_sweep(world: World) -> None:
    def redeliver(_: int) -> None:
        raise BUSY

    with pytest.raises(GitHubError):
        Sweep(lambda _: tried(world, 502), redeliver, world.clock).run()
