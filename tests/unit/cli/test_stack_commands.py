"""`up` and `demo` without a stack: what they make of its failures and of a run's outcome."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from sandpiper_cli.main import app
from sandpiper_local import demo, stack
from sandpiper_local.demo import DemoFailed, check_outcome, check_tests, clone, without_marks
from sandpiper_local.errors import AlreadyRunning, LocalError, PortTaken
from sandpiper_local.sample_repository import create_sample_repository
from tests.unit.cli.fake_api import a_run

if TYPE_CHECKING:
    from pathlib import Path

    from sandpiper_local.stack import UpOptions

READY = {
    "event": "ready",
    "api_url": "http://127.0.0.1:8787",
    "ws_url": "ws://127.0.0.1:8787/ws",
    "aws_endpoint": "http://127.0.0.1:4566",
    "model": "scripted",
}
PASSED = {"gate": {"status": "passed"}}


def stack_that(monkeypatch: pytest.MonkeyPatch, failure: LocalError | None) -> list[UpOptions]:
    calls: list[UpOptions] = []

    def up(options: UpOptions, report: Any) -> None:
        calls.append(options)
        if failure is not None:
            raise failure
        report(READY)

    monkeypatch.setattr(stack, "up", up)
    return calls


@pytest.mark.parametrize(
    ("failure", "code"), [(AlreadyRunning(7, "http://127.0.0.1:1"), 3), (PortTaken(80), 4), (LocalError("no"), 1)]
)
def test_a_stack_that_can_not_start_says_why_with_its_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, failure: LocalError, code: int
) -> None:
    stack_that(monkeypatch, failure)
    result = CliRunner().invoke(app, ["up"])
    assert (result.exit_code, result.stderr) == (code, f"{failure}\n")


def test_up_says_where_it_is_and_who_plays_the_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = stack_that(monkeypatch, None)
    result = CliRunner().invoke(app, ["up", "--port", "9000", "--state-dir", str(tmp_path)])
    assert [(options.port, options.state_dir) for options in calls] == [(9000, tmp_path)]
    assert result.stdout.startswith("ready\n")
    assert "http://127.0.0.1:8787" in result.stdout
    assert "scripted" in result.stdout


def test_up_with_a_fake_github_says_where_it_is_and_what_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stack_that(monkeypatch, None)
    monkeypatch.setitem(READY, "github_url", "http://127.0.0.1:9999")
    result = CliRunner().invoke(app, ["up", "--github", "fake"])
    assert [options.github for options in calls] == ["fake"]
    assert "http://127.0.0.1:9999" in result.stdout
    assert "sandpiper comment" in result.stdout


def test_up_in_json_is_one_message_per_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stack_that(monkeypatch, None)
    assert json.loads(CliRunner().invoke(app, ["up", "--json"]).stdout) == READY


def test_a_demo_that_went_wrong_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise DemoFailed("the quality gate did not pass")

    monkeypatch.setattr(demo, "run_demo", fail)
    result = CliRunner().invoke(app, ["demo"])
    assert (result.exit_code, result.stderr) == (1, "the quality gate did not pass\n")


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (a_run(status="failed"), "failed"),
        (a_run(result={"gate": {"status": "skipped"}}), "gate"),
        (a_run(result=None), "gate"),
        (a_run(result={**PASSED, "pull_request": None}), "no pull request"),
    ],
)
def test_the_demo_takes_nothing_less_than_a_completed_run_with_a_green_gate_and_a_pull_request(
    run: dict[str, Any], reason: str
) -> None:
    with pytest.raises(DemoFailed, match=reason):
        check_outcome(run)


def test_the_demo_runs_the_tests_of_the_branch_itself(tmp_path: Path) -> None:
    repository = create_sample_repository(tmp_path / "tillroll")
    with pytest.raises(DemoFailed, match="899"):  # the branch is still at the base, where one test fails
        check_tests(clone(str(repository), "main", tmp_path / "checkout"))


def test_what_github_hides_on_its_pages_is_not_shown() -> None:
    assert without_marks("<!-- sandpiper:run r -->\n### Done\n\n<sub>`r`</sub>") == "### Done\n\n`r`"
