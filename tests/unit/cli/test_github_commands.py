"""A person on the fake GitHub, from the terminal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from sandpiper_cli.main import app
from sandpiper_local.fake_github.runner import FakeGitHub
from sandpiper_local.fake_github.sample import REPOSITORY, TITLE, seed
from sandpiper_local.sample_repository import sample_task

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result


@pytest.fixture
def github(tmp_path: Path) -> Iterator[FakeGitHub]:
    with FakeGitHub(tmp_path / "github") as fake:
        (tmp_path / "local.json").write_text(json.dumps({"api_url": "http://127.0.0.1:1", "github_url": fake.url}))
        seed(fake)
        yield fake


def sandpiper(tmp_path: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["--state-dir", str(tmp_path), *words])


def test_a_fresh_fake_has_an_issue_that_asks_for_the_sample_task(github: FakeGitHub) -> None:
    issue = github.call("GET", f"/repos/{REPOSITORY}/issues/1", by="ann")
    assert (issue["title"], issue["body"]) == (TITLE, sample_task().task)


def test_a_comment_is_posted_as_the_one_who_speaks(github: FakeGitHub, tmp_path: Path) -> None:
    said = sandpiper(tmp_path, "comment", f"{REPOSITORY}#1", "/implement", "--as", "rob")
    assert said.exit_code == 0
    assert said.stdout.startswith(f"{github.url}/{REPOSITORY}/issues/1#issuecomment-")
    [comment] = github.call("GET", f"/repos/{REPOSITORY}/issues/1/comments", by="ann")
    assert (comment["body"], comment["user"]["login"]) == ("/implement", "rob")


def test_a_conversation_and_its_pull_requests_are_shown(github: FakeGitHub, tmp_path: Path) -> None:
    github.comment(REPOSITORY, 1, "Please \x1b[31mhurry", by="ann")
    github.commit(REPOSITORY, "topic", {"README.md": "x"})
    github.open_pull(REPOSITORY, "topic", by="ann")
    shown = sandpiper(tmp_path, "github", "show", f"{REPOSITORY}#1").stdout
    assert f"#1 {TITLE} (open)" in shown
    assert "Please ␛[31mhurry" in shown
    assert "Pull request #2 Merge topic (topic, open)" in shown
    document = json.loads(sandpiper(tmp_path, "github", "show", f"{REPOSITORY}#1", "--json").stdout)
    assert (document["issue"]["number"], len(document["comments"]), len(document["pulls"])) == (1, 1, 1)


@pytest.mark.parametrize(("place", "code"), [("acme/tillroll", 2), ("tillroll#1", 2), (f"{REPOSITORY}#99", 5)])
def test_a_place_that_is_none_is_told(github: FakeGitHub, tmp_path: Path, place: str, code: int) -> None:
    told = sandpiper(tmp_path, "comment", place, "hello")
    assert told.exit_code == code
    assert told.stderr


def test_a_stack_without_a_fake_says_how_to_start_one(tmp_path: Path) -> None:
    (tmp_path / "local.json").write_text(json.dumps({"api_url": "http://127.0.0.1:1", "github_url": None}))
    told = sandpiper(tmp_path, "comment", "acme/tillroll#1", "hello")
    assert (told.exit_code, "up --github fake" in told.stderr) == (3, True)


def test_a_fake_that_is_gone_is_told(tmp_path: Path) -> None:
    (tmp_path / "local.json").write_text(json.dumps({"github_url": "http://127.0.0.1:1"}))
    told = sandpiper(tmp_path, "comment", "acme/tillroll#1", "hello")
    assert (told.exit_code, "nobody answers" in told.stderr) == (3, True)
