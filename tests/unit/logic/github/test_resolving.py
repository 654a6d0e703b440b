"""Whose remarks are resolved, on whose word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandpiper import limits
from sandpiper.errors import Fenced, PermissionDenied
from sandpiper.logic.github.resolving import Resolver
from sandpiper.testing.github import FakeRemarks
from tests.unit.logic.github.hub_world import ORIGIN, OWNER, SPEC
from tests.unit.logic.world import World

if TYPE_CHECKING:
    from sandpiper.models.github import GitHubOrigin

REVIEW = SPEC.model_copy(update={"type": "code-review"})


class Here:
    def __init__(self, *threads: str) -> None:
        self.world, self.remarks = World(), FakeRemarks(*threads)
        self.places: list[GitHubOrigin] = []
        self.resolver = Resolver(self.world.runs, self.remarks_of)

    def remarks_of(self, origin: GitHubOrigin) -> FakeRemarks:
        self.places.append(origin)
        return self.remarks


def test_a_review_resolves_its_own_open_remarks_on_its_own_pull_request_and_no_others() -> None:
    here = Here("T1", "T2")
    run_id = here.world.running(OWNER, REVIEW)
    assert here.resolver.resolve(run_id, 1, ["T2", "somebody-elses"]) == 1
    assert (here.remarks.resolved, here.places) == (["T2"], [ORIGIN])
    assert here.resolver.resolve(run_id, 1, ["T2"]) == 0


def test_a_review_resolves_so_many_and_no_more() -> None:
    threads = [f"T{number}" for number in range(limits.RESOLVED_THREADS + 5)]
    here = Here(*threads)
    assert here.resolver.resolve(here.world.running(OWNER, REVIEW), 1, threads) == limits.RESOLVED_THREADS


@pytest.mark.parametrize("changes", [{"type": "bug-fix"}, {"type": "code-review", "github": None}])
def test_nobody_else_resolves_anything(changes: dict[str, Any]) -> None:
    here = Here("T1")
    with pytest.raises(PermissionDenied):
        here.resolver.resolve(here.world.running(OWNER, SPEC.model_copy(update=changes)), 1, ["T1"])
    assert (here.remarks.resolved, here.places) == ([], [])


def test_a_sandbox_that_was_replaced_resolves_nothing() -> None:
    here = Here("T1")
    with pytest.raises(Fenced):
        here.resolver.resolve(here.world.running(OWNER, REVIEW), 2, ["T1"])
    assert here.remarks.resolved == []
