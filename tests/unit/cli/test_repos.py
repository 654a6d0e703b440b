from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandpiper_cli import exits
from sandpiper_cli.repos import repo_to_send

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work" / "project" / ".git").mkdir(parents=True)
    (tmp_path / "work" / "notes").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "work"


@pytest.mark.parametrize("repo", ["./work/project", "work/project", "work/../work/project"])
def test_a_checkout_in_front_of_us_goes_out_as_its_absolute_path(work: Path, repo: str) -> None:
    assert repo_to_send(repo, endpoint_is_local=True) == str(work / "project")


@pytest.mark.parametrize("repo", ["owner/repo", "work/notes", "https://github.com/owner/repo"])
def test_what_is_no_checkout_goes_out_as_it_is(repo: str) -> None:
    assert repo_to_send(repo, endpoint_is_local=True) == repo


def test_for_a_remote_sandpiper_a_name_in_two_parts_is_owner_and_repo() -> None:
    assert repo_to_send("work/project", endpoint_is_local=False) == "work/project"


def test_a_path_that_a_remote_sandpiper_can_not_reach_is_refused() -> None:
    with pytest.raises(exits.CliError, match="can't reach it"):
        repo_to_send("./work/project", endpoint_is_local=False)
