"""Quotas on the store: counted in the write that creates a run, so that no number of callers gets past them."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from sandpiper.adapters.quotas import DynamoQuotas
from sandpiper.errors import Conflict, QuotaExceeded
from sandpiper.logic.quotas import QuotaRules
from sandpiper.models.quota import Account, Quota, Scope
from sandpiper.models.run import Usage
from sandpiper.testing.fakes import FakeClock, FakeQuotas, FakeRuns
from tests.contract.samples import a_run

if TYPE_CHECKING:
    from sandpiper.models.run import Run
    from sandpiper.ports import Admission, Runs
    from tests.contract.worlds import Aws

MONTH = "2026-01"
STARTS, FEWER = 200, 40
DEFAULTS = Quota(starts_per_minute=4, starts_per_day=25, monthly_usd=1.0)


class Books:
    def __init__(self, runs: Runs, rules: QuotaRules, clock: FakeClock, owner: str) -> None:
        self.runs, self.rules, self.clock, self.owner = runs, rules, clock, owner

    @property
    def scopes(self) -> tuple[Scope, Scope]:
        return Scope("user", self.owner), Scope("org", f"org of {self.owner}")

    def a_run(self) -> Run:
        return a_run(self.owner, self.clock, org=self.scopes[1].name)

    def start(self, run: Run) -> str:
        try:
            self.runs.create(run, [], admit=self.rules.admit)
        except (QuotaExceeded, Conflict) as refused:
            return refused.type
        return "started"

    def account(self, scope: Scope) -> Account:
        return self.rules.books.account(scope, MONTH)


@pytest.fixture(params=["fake", "real"])
def books(request: pytest.FixtureRequest, owner: str) -> Books:
    if request.param == "real":
        return _real_books(request.getfixturevalue("aws"), owner)
    fake, clock = FakeQuotas(), FakeClock()
    return Books(FakeRuns(clock, quotas=fake), QuotaRules(fake, clock, DEFAULTS), clock, owner)


def _real_books(aws: Aws, owner: str) -> Books:
    clock = FakeClock()
    quotas = DynamoQuotas(aws.client("dynamodb"), runs_table=aws.runs_table)
    return Books(aws.runs(clock), QuotaRules(quotas, clock, DEFAULTS), clock, owner)


def test_nothing_is_known_of_somebody_new(books: Books) -> None:
    for scope in books.scopes:
        assert books.account(scope) == Account(scope=scope)


def test_limits_that_were_set_replace_those_before(books: Books) -> None:
    user, org = books.scopes
    books.rules.books.set_limits(user, Quota(starts_per_day=7, monthly_usd=2.5))
    books.rules.books.set_limits(user, Quota(concurrency=3))
    assert books.account(user).limits == books.rules.books.limits_of(user) == Quota(concurrency=3)
    assert books.account(org).limits == Quota()


def test_a_user_and_an_organization_of_one_name_are_two(books: Books) -> None:
    books.rules.books.set_limits(Scope("user", books.owner), Quota(concurrency=3))
    assert books.account(Scope("org", books.owner)).limits == Quota()


def test_starts_are_counted_newest_first_with_their_times(books: Books) -> None:
    first = books.clock.now()
    for _ in range(2):
        assert books.start(books.a_run()) == "started"
        books.clock.advance(10)
    assert books.account(books.scopes[0]).starts == (first + timedelta(seconds=10), first)


def test_a_taken_id_is_told_from_a_full_quota_and_counts_nothing(books: Books) -> None:
    books.rules.books.set_limits(books.scopes[0], Quota(starts_per_minute=1))
    run = books.a_run()
    assert [books.start(run), books.start(run), books.start(books.a_run())] == ["started", "conflict", "quota_exceeded"]
    assert len(books.account(books.scopes[0]).starts) == 1


@pytest.mark.parametrize(
    ("limit", "whose", "starts"),
    [
        ("starts_per_minute", 0, STARTS),
        ("starts_per_minute", 1, FEWER),
        ("starts_per_day", 0, FEWER),
        ("starts_per_day", 1, FEWER),
    ],
)
def test_two_hundred_starts_at_once_never_exceed_a_limit(books: Books, limit: str, whose: int, starts: int) -> None:
    books.rules.books.set_limits(books.scopes[0], Quota(starts_per_minute=1_000, starts_per_day=1_000))
    books.rules.books.set_limits(books.scopes[whose], Quota.model_validate({limit: 5}))
    with ThreadPoolExecutor(20) as pool:
        told = Counter(pool.map(lambda _: books.start(books.a_run()), range(starts)))
    allowed = 4 if (whose, limit) == (0, "starts_per_day") else 5  # the default of a minute still stands
    assert told == {"started": allowed, "quota_exceeded": starts - allowed}
    assert len(books.account(books.scopes[whose]).starts) == allowed
    assert books.runs.usage_of(books.owner, MONTH).runs == allowed


def test_the_same_start_sent_many_times_counts_once(books: Books) -> None:
    run = books.a_run()
    with ThreadPoolExecutor(20) as pool:
        told = Counter(pool.map(lambda _: books.start(run), range(FEWER)))
    assert told == {"started": 1, "conflict": FEWER - 1}
    assert len(books.account(books.scopes[0]).starts) == 1


def test_what_a_run_costs_is_in_the_books_of_its_user_and_its_organization(books: Books) -> None:
    run = books.a_run()
    books.start(run)
    books.runs.change(run.run_id, allowed=["queued"], changes={"usage": Usage(cost_usd=0.25)})
    assert [books.account(scope).spent_usd for scope in books.scopes] == [0.25, 0.25]


def test_a_month_that_is_spent_while_a_start_is_decided_refuses_it(aws: Aws, owner: str) -> None:
    """The rule saw something left; the write sees that it is gone, and the rule is asked again."""
    books = _real_books(aws, owner)
    run, asked = books.a_run(), []
    books.start(run)

    def admit(account: Account) -> Admission:
        admission = books.rules.admit(account)
        if not asked:
            asked.append(account)
            books.runs.change(run.run_id, allowed=["queued"], changes={"usage": Usage(cost_usd=1.0)})
        return admission

    with pytest.raises(QuotaExceeded):
        books.runs.create(books.a_run(), [], admit=admit)
