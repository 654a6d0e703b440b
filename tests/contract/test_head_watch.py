"""Which run waits for the CI of a commit, as the fake and as DynamoDB have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandpiper.adapters.head_watch import DynamoHeadWatch
from sandpiper.testing.clock import FakeClock
from sandpiper.testing.github import FakeHeadWatch

if TYPE_CHECKING:
    from sandpiper.github_ports import HeadWatch
    from tests.contract.worlds import Aws


@pytest.fixture(params=["fake", "real"])
def watch(request: pytest.FixtureRequest) -> HeadWatch:
    if request.param == "fake":
        return FakeHeadWatch()
    aws: Aws = request.getfixturevalue("aws")
    return DynamoHeadWatch(request.getfixturevalue("dynamodb"), runs_table=aws.runs_table, clock=FakeClock())


def test_a_commit_leads_to_the_run_that_waits_for_it(watch: HeadWatch, run_id: str) -> None:
    watch.watch("7", run_id, run_id)
    watch.watch("7", run_id, run_id)
    assert watch.watcher("7", run_id) == run_id


def test_the_run_that_pushed_last_is_the_one_that_waits(watch: HeadWatch, run_id: str) -> None:
    watch.watch("o/r", run_id, "run-old")
    watch.watch("o/r", run_id, run_id)
    assert watch.watcher("o/r", run_id) == run_id


def test_a_commit_that_nobody_waits_for_leads_nowhere(watch: HeadWatch, run_id: str) -> None:
    watch.watch("o/other", run_id, run_id)
    assert watch.watcher("o/r", run_id) is None
