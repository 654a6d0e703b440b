"""A token that is asked for where it is used, and renewed before it runs out."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from sandbox_task.github.tokens import TokenSource
from sandbox_task.redaction import MARK, Redactor
from sandbox_task.workspace.repository import Repository
from sandpiper import limits
from sandpiper.errors import Fenced, GitHubError, RunError
from sandpiper.testing.clock import FakeClock
from sandpiper.testing.github import FakeRepositoryTokens
from tests.unit.sandbox.clones import AUTHOR, spec
from tests.unit.sandbox.git_server import TOKEN, GitServer

if TYPE_CHECKING:
    from sandbox_task.isolation.launch import Rooms

AWAY = GitHubError("GitHub did not answer.", code=0, retryable=True)


class Sources:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.minted = FakeRepositoryTokens(self.clock)
        self.redactor = Redactor()

    def source(self, given: str | None = None, attempt: int = 1) -> TokenSource:
        learn = self.redactor.learn
        return TokenSource(given, self.minted, "run-1", attempt, clock=self.clock, learn=learn)


@pytest.fixture
def sources() -> Sources:
    return Sources()


def test_the_token_of_the_request_is_used_and_none_is_minted(sources: Sources) -> None:
    assert sources.source("ghp_mine")() == "ghp_mine"
    assert sources.minted.given == []


def test_without_anybody_to_ask_there_is_none() -> None:
    assert TokenSource(None, None, "r", 1, clock=FakeClock(), learn=lambda _: None)() is None


def test_one_token_serves_until_shortly_before_it_runs_out(sources: Sources) -> None:
    source = sources.source()
    first = source()
    sources.clock.advance(54 * 60)
    assert source() == first
    sources.clock.advance(2 * 60)
    assert source() != first
    assert len(sources.minted.given) == 2


def test_each_minted_token_is_hidden_from_everything_that_leaves(sources: Sources) -> None:
    source = sources.source()
    for _ in range(2):
        header = base64.b64encode(f"x-access-token:{source()}".encode()).decode().rstrip("=")
        assert sources.redactor.text(f"say {header}") == f"say {MARK}"
        sources.clock.advance(3600)


def test_an_old_token_serves_to_its_last_second_while_no_new_one_is_to_be_had(sources: Sources) -> None:
    source = sources.source()
    first = source()
    sources.minted.failure = AWAY
    sources.clock.advance(59 * 60)
    assert source() == first
    sources.clock.advance(2 * 60)
    with pytest.raises(RunError, match="no token for the repository to be had: GitHub did not answer") as told:
        source()
    assert told.value.retryable


def test_another_attempts_token_is_not_given(sources: Sources) -> None:
    with pytest.raises(Fenced):
        sources.source(attempt=2)()


def test_a_token_is_new_for_a_while_and_one_that_was_given_never_is(sources: Sources) -> None:
    source, given = sources.source(), sources.source("ghp_mine")
    assert not source.is_new()
    assert (source() is not None, given()) == (True, "ghp_mine")
    assert (source.is_new(), given.is_new()) == (True, False)
    sources.clock.advance(limits.GITHUB_NEW_TOKEN_SECONDS)
    assert not source.is_new()


@pytest.mark.parametrize("refusals", [1, 2])
def test_git_asks_again_while_its_token_may_not_be_known_everywhere(
    rooms: Rooms, git_server: GitServer, sources: Sources, monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    monkeypatch.setattr(limits, "GITHUB_PAUSES_SECONDS", (0.0, 0.0, 0.0))
    sources.minted = FakeRepositoryTokens(sources.clock, tokens=iter([TOKEN]))
    source = sources.source()
    url = git_server.create("r", {"a": "1\n"})
    git_server.refusals = refusals
    repository = Repository.clone(spec(url), rooms, token=source)
    assert repository.base_commit
    sources.clock.advance(limits.GITHUB_NEW_TOKEN_SECONDS)
    git_server.refusals = 1
    sha = repository.commit(repository.base_tree, "m", author=AUTHOR)
    with pytest.raises(RunError, match="may not write to it"):
        repository.push(sha, "topic")


def test_git_asks_for_the_token_when_it_reaches_out_and_not_before(rooms: Rooms, git_server: GitServer) -> None:
    good = {"token": TOKEN}
    repository = Repository.clone(spec(git_server.create("r", {"a": "1\n"})), rooms, token=lambda: good["token"])
    sha = repository.commit(repository.base_tree, "m", author=AUTHOR)
    good["token"] = "ghs_runout000000000000"
    with pytest.raises(RunError, match="may not write to it"):
        repository.push(sha, "topic")
    good["token"] = TOKEN
    repository.push(sha, "topic")
    assert git_server.branches("r") == ["main", "topic"]
