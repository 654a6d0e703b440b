"""A repository that is renamed while a run works on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.github.whereabouts import Whereabouts
from sandbox_task.workspace.repository import Repository
from sandpiper.adapters.github.client import GitHubClient
from sandpiper.errors import RunError
from sandpiper.models.github import GitHubOrigin
from tests.unit.sandbox.clones import AUTHOR, spec
from tests.unit.sandbox.git_server import TOKEN, GitServer

if TYPE_CHECKING:
    from sandbox_task.isolation.launch import Rooms
    from sandbox_task.workspace.git import MovedTo
    from tests.unit.sandbox.github.stub import StubGitHub

ORIGIN = GitHubOrigin(
    installation_id=1, repository="o/r", repository_id=7, number=1, command="fix", sender="ann", origin="issue"
)
FILES = {"a.txt": "one\n"}


def pushed(server: GitServer, rooms: Rooms, moved_to: MovedTo) -> None:
    """A commit, to a repository that has another name by then."""
    repository = Repository.clone(spec(server.create("o/r", FILES)), rooms, token=TOKEN, moved_to=moved_to)
    server.rename("o/r", "o/new")
    commit = repository.commit(repository.base_tree, "m\n", author=AUTHOR)
    repository.push(commit, "work")
    assert repository.has_been_pushed(commit, "work")


def test_what_was_renamed_is_found_once_and_pushed_to(git_server: GitServer, rooms: Rooms) -> None:
    looks = []

    def look() -> str:
        looks.append(1)
        return git_server.url("o/new")

    pushed(git_server, rooms, look)
    assert (git_server.branches("o/new"), len(looks)) == (["main", "work"], 1)


@pytest.mark.parametrize("moved_to", [None, lambda: None])
def test_what_nobody_finds_is_told_in_words(git_server: GitServer, rooms: Rooms, moved_to: MovedTo) -> None:
    with pytest.raises(RunError, match="was renamed or moved"):
        pushed(git_server, rooms, moved_to)


@pytest.mark.parametrize(
    ("answer", "url"),
    [
        ((200, {"id": 7, "full_name": "o/new"}), "https://github.test/o/new.git"),
        ((200, {"id": 8, "full_name": "o/r"}), None),
        ((200, {"id": 7, "full_name": "../../evil"}), None),
        ((404, {"message": "Not Found"}), None),
    ],
    ids=["renamed", "another under the old name", "no name", "gone"],
)
def test_github_is_believed_only_about_the_same_repository(
    github: StubGitHub, monkeypatch: pytest.MonkeyPatch, answer: tuple[int, Any], url: str | None
) -> None:
    monkeypatch.setattr(github, "answer", lambda _: answer)
    client = GitHubClient(github.url, lambda: "t", sleep=lambda _: None)
    assert Whereabouts(client, ORIGIN, "https://github.test")() == url
