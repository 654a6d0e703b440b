"""What becomes of a command on GitHub."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from sandpiper import limits
from sandpiper.errors import GitHubError, Unavailable
from sandpiper.logic.github.deliveries import run_id_of
from sandpiper.models.quota import Quota, Scope
from tests.unit.logic.github.hub_world import BUSY, ORIGIN, PULL, HubWorld, delivery, pull_topic


@pytest.fixture
def here() -> HubWorld:
    return HubWorld()


def test_a_command_of_a_writer_becomes_a_run_of_theirs(here: HubWorld) -> None:
    run_id = here.orders.obey(delivery())
    run = here.world.get(run_id)
    assert run_id == run_id_of(delivery())
    assert (run.owner, run.org, run.status) == ("github:ann", "github:acme", "queued")
    spec = run.spec
    assert (spec.type, spec.task, spec.repo) == ("feature-implementation", "a logout button", "acme/shop")
    assert spec.repo_url == "https://github.test/acme/shop.git"
    assert (spec.base, spec.branch, spec.create_pr, spec.commit) == ("main", None, True, True)
    assert spec.github == ORIGIN.model_copy(update={"author": here.hub.author()})
    assert here.hubs[0] == (42, "acme/shop")


def test_the_one_who_asked_sees_at_once_that_it_was_heard(here: HubWorld) -> None:
    run_id = here.orders.obey(delivery())
    assert here.hub.reactions == {("issue_comment", 70, "eyes")}
    assert list(here.hub.comments) == [1]
    assert run_id in here.hub.comments[1]
    assert here.world.get(run_id).status_comment_id == 1


def test_five_deliveries_at_once_make_one_run_one_reaction_and_one_comment(here: HubWorld) -> None:
    with ThreadPoolExecutor(5) as pool:
        done = list(pool.map(lambda _: here.orders.obey(delivery()), range(5)))
    assert sorted(done)[:4] == ["known"] * 4
    assert len(here.hub.reactions) == len(here.hub.comments) == 1
    assert len(here.world.runs.list_by_owner("github:ann", status=None, repo=None, limit=10, cursor=None).items) == 1


def test_a_redelivery_after_the_work_was_done_does_nothing(here: HubWorld) -> None:
    here.orders.obey(delivery())
    assert here.orders.obey(delivery()) == "known"


@pytest.mark.parametrize("fine_calls", range(6))
def test_a_delivery_that_failed_anywhere_in_the_middle_works_when_it_is_repeated(
    here: HubWorld, fine_calls: int
) -> None:
    here.hub.failures = [*[None] * fine_calls, BUSY]
    with pytest.raises(GitHubError):
        here.orders.obey(delivery())
    run_id = here.orders.obey(delivery())
    assert run_id == run_id_of(delivery())
    assert len(here.hub.comments) == 1
    assert here.world.get(run_id).status_comment_id == 1


def test_a_function_that_died_holding_a_delivery_does_not_hold_it_for_ever(here: HubWorld) -> None:
    here.holds.take("delivery#d-1", seconds=limits.GITHUB_HELD_SECONDS)
    assert here.orders.obey(delivery()) == "known"
    here.world.clock.advance(limits.GITHUB_HELD_SECONDS + 1)
    assert here.orders.obey(delivery()) == run_id_of(delivery())


def test_a_run_that_could_not_be_started_is_started_by_the_repetition(
    here: HubWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(here.world.workflow, "start", _fail)
        with pytest.raises(Unavailable):
            here.orders.obey(delivery())
    run_id = here.orders.obey(delivery())
    assert here.world.status(run_id) == "queued"


def test_who_may_not_write_gets_a_reaction_and_no_words(here: HubWorld) -> None:
    assert here.orders.obey(delivery(sender="eve")) == "refused"
    assert here.hub.reactions == {("issue_comment", 70, "confused")}
    assert not here.hub.comments
    assert here.topics.latest("acme/shop", 7) is None


def test_a_bare_command_on_an_issue_takes_the_issue_as_the_task(here: HubWorld) -> None:
    run = here.world.get(here.orders.obey(delivery("")))
    assert run.spec.task == "A logout button\n\nThere is none."


@pytest.mark.parametrize(
    ("verb", "kind", "commits"),
    [("implement", "feature-implementation", True), ("fix", "bug-fix", True), ("review", "code-review", False),
     ("test", "test-suite", False)],
)  # fmt: skip
def test_on_a_pull_request_the_work_is_on_its_branch_and_its_head(
    here: HubWorld, verb: str, kind: str, *, commits: bool
) -> None:
    here.hub.topics[8] = pull_topic()
    spec = here.world.get(here.orders.obey(delivery("", verb=verb, number=8, is_pull=True))).spec
    assert (spec.type, spec.commit, spec.create_pr) == (kind, commits, False)
    assert (spec.branch, spec.base) == ("topic", "main")
    assert spec.github is not None
    assert spec.github.pull == PULL
    assert spec.task


@pytest.mark.parametrize(("verb", "has_author"), [("implement", True), ("fix", True), ("test", False)])
def test_who_commits_is_settled_when_the_run_is_started(here: HubWorld, verb: str, *, has_author: bool) -> None:
    origin = here.world.get(here.orders.obey(delivery(verb=verb))).spec.github
    assert origin is not None
    assert origin.author == (here.hub.author() if has_author else None)


@pytest.mark.parametrize("verb", ["implement", "fix"])
def test_a_pull_request_from_a_fork_is_not_written_to(here: HubWorld, verb: str) -> None:
    here.hub.topics[8] = pull_topic(from_fork=True)
    assert here.orders.obey(delivery(verb=verb, number=8, is_pull=True)) == "refused"
    assert "comes from a fork" in here.hub.comments[1]


@pytest.mark.parametrize("verb", ["review", "test"])
def test_a_pull_request_from_a_fork_may_be_reviewed_and_tested(here: HubWorld, verb: str) -> None:
    here.hub.topics[8] = pull_topic(from_fork=True)
    spec = here.world.get(here.orders.obey(delivery(verb=verb, number=8, is_pull=True))).spec
    assert spec.branch is None
    assert not spec.commit


def test_an_issue_can_not_be_reviewed(here: HubWorld) -> None:
    assert here.orders.obey(delivery(verb="review")) == "refused"
    assert "no pull request here" in here.hub.comments[1]


def test_a_closed_pull_request_is_not_worked_on(here: HubWorld) -> None:
    here.hub.topics[8] = pull_topic().model_copy(update={"is_open": False})
    assert here.orders.obey(delivery(number=8, is_pull=True)) == "refused"


def test_who_has_used_up_a_quota_is_told_so_in_words(here: HubWorld) -> None:
    here.world.quotas.set_limits(Scope("user", "github:ann"), Quota(monthly_usd=0))
    assert here.orders.obey(delivery()) == "refused"
    assert "quota is used up" in here.hub.comments[1]
    assert here.world.runs.list_by_owner("github:ann", status=None, repo=None, limit=1, cursor=None).items == ()


def _fail(*_: object) -> None:
    raise RuntimeError("no state machine")
