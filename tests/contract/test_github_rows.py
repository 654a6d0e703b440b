"""Which run an issue is about, and who works on what: the fake and DynamoDB alike."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.adapters.github.holds import DynamoHolds
from sandpiper.adapters.github.topics import DynamoTopics
from sandpiper.github_ports import Hold
from sandpiper.models.github import GitHubOrigin
from sandpiper.models.run import PullRequestInfo, RunResult
from sandpiper.testing.clock import FakeClock
from sandpiper.testing.hub import FakeHolds, FakeTopics
from tests.contract.samples import a_run

if TYPE_CHECKING:
    from sandpiper.github_ports import Holds, Topics
    from sandpiper.models.run import Run
    from tests.contract.worlds import Aws


@dataclass(frozen=True)
class Rows:
    topics: Topics
    holds: Holds
    clock: FakeClock


@pytest.fixture(params=["fake", "real"])
def rows(request: pytest.FixtureRequest) -> Rows:
    clock = FakeClock()
    if request.param == "fake":
        return Rows(FakeTopics(), FakeHolds(clock), clock)
    aws: Aws = request.getfixturevalue("aws")
    dynamodb: Any = request.getfixturevalue("dynamodb")
    holds = DynamoHolds(dynamodb, table=aws.idempotency_table, clock=clock)
    return Rows(DynamoTopics(dynamodb, runs_table=aws.runs_table), holds, clock)


@pytest.fixture
def repository() -> str:
    return f"acme/{uuid.uuid4()}"


@pytest.fixture
def name() -> str:
    return f"delivery#{uuid.uuid4()}"


def asked_on(rows: Rows, repository: str, number: int = 7) -> Run:
    rows.clock.advance(1)
    run = a_run("ann", rows.clock)
    origin = GitHubOrigin(
        installation_id=1, repository=repository, number=number, command="fix", sender="ann", origin="issue"
    )
    return run.model_copy(update={"spec": run.spec.model_copy(update={"github": origin})})


def test_a_run_is_known_by_the_pull_request_that_it_opened_too(rows: Rows, repository: str) -> None:
    opened = RunResult(outcome="suspended", pull_request=PullRequestInfo(number=9, url="u"))
    first, second = (asked_on(rows, repository).model_copy(update={"result": opened}) for _ in range(2))
    for run in (second, first):
        rows.topics.note(run)
    assert [rows.topics.latest(repository, number) for number in (7, 9)] == [second.run_id] * 2


def test_the_last_run_of_an_issue_is_known_by_any_spelling_of_its_repository(rows: Rows, repository: str) -> None:
    first, second = asked_on(rows, repository.upper()), asked_on(rows, repository)
    rows.topics.note(first)
    rows.topics.note(second)
    rows.topics.note(asked_on(rows, repository, 8))
    assert rows.topics.latest(repository, 7) == second.run_id


def test_an_earlier_run_does_not_replace_a_later_one(rows: Rows, repository: str) -> None:
    first, second = asked_on(rows, repository), asked_on(rows, repository)
    rows.topics.note(second)
    rows.topics.note(first)
    rows.topics.note(second)
    assert rows.topics.latest(repository, 7) == second.run_id


def test_an_issue_without_a_run_has_none(rows: Rows, repository: str) -> None:
    assert rows.topics.latest(repository, 7) is None


def test_a_run_that_was_not_asked_for_on_github_is_not_noted(rows: Rows) -> None:
    rows.topics.note(a_run("ann", rows.clock))


def test_what_somebody_holds_nobody_else_gets_until_it_is_released(rows: Rows, name: str) -> None:
    assert rows.holds.take(name, seconds=60) == Hold(again=False)
    assert rows.holds.take(name, seconds=60) is None
    rows.holds.release(name, done=False)
    rows.clock.advance(0.001)
    assert rows.holds.take(name, seconds=60) == Hold(again=True)


def test_what_is_done_is_not_taken_again(rows: Rows, name: str) -> None:
    rows.holds.take(name, seconds=60)
    rows.holds.release(name, done=True)
    rows.clock.advance(3600)
    assert rows.holds.take(name, seconds=60) is None


def test_what_a_dead_one_held_is_free_after_a_while(rows: Rows, name: str) -> None:
    rows.holds.take(name, seconds=60)
    rows.clock.advance(61)
    assert rows.holds.take(name, seconds=60) == Hold(again=True)


def test_of_many_at_once_one_gets_it(rows: Rows, name: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: rows.holds.take(name, seconds=60), range(8)))
    assert [held for held in taken if held] == [Hold(again=False)]
