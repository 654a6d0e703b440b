"""A run that waits for a person: what is said, which exit code, and the commands that let it go on."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from sandpiper_cli import follow, live
from sandpiper_cli.client import Api
from sandpiper_cli.main import app
from sandpiper_cli.render import JsonView
from tests.unit.cli.fake_api import RUN_ID, TOKEN, FakeApi, SocketScript, a_run, event

if TYPE_CHECKING:
    from typer.testing import Result

SUSPENDED = event(2, "run_suspended", reason="budget_exhausted")


def sandpiper(api: FakeApi, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--endpoint", api.url, "--token", TOKEN])


def suspended(reason: str, **changes: Any) -> dict[str, Any]:
    return a_run(status="suspended", suspend_reason=reason, **changes)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    taken: list[float] = []
    monkeypatch.setattr(follow.time, "sleep", taken.append)
    return taken


@pytest.fixture
def waiting(api: FakeApi, pauses: list[float]) -> FakeApi:
    api.run = suspended("budget_exhausted", result={"exhausted": "max_turns"})
    api.events = [event(1, "run_queued"), SUSPENDED]
    return api


@pytest.mark.parametrize("command", [["run", "Fix it"], ["watch", RUN_ID], ["watch", RUN_ID, "--after", "2"]])
def test_a_run_that_suspends_says_why_and_how_to_go_on_with_an_exit_code_of_its_own(
    waiting: FakeApi, command: list[str]
) -> None:
    result = sandpiper(waiting, *command)
    assert result.exit_code == 6
    assert f"{RUN_ID} is suspended: it has used up its budget of 48 turns." in result.stdout
    assert "nothing is billed" in result.stdout
    assert f"sandpiper budget {RUN_ID}\n" in result.stdout


def test_a_question_is_shown_with_the_command_that_answers_it(api: FakeApi, pauses: list[float]) -> None:
    api.run = suspended("awaiting_input", question="Which \x1b[31mdatabase?")
    api.events = [event(1, "run_suspended", reason="awaiting_input", question="Which \x1b[31mdatabase?")]
    result = sandpiper(api, "watch", RUN_ID)
    assert "Which ␛[31mdatabase?" in result.stdout
    assert f'sandpiper say {RUN_ID} "your answer"' in result.stdout


def test_a_run_that_has_gone_on_is_followed_to_its_end(api: FakeApi, pauses: list[float]) -> None:
    api.run = a_run()
    api.events = [event(1, "run_queued"), SUSPENDED, event(3, "run_resumed"), event(4, "run_completed")]
    result = sandpiper(api, "watch", RUN_ID)
    assert result.exit_code == 0
    assert "Suspended: the budget is used up\nGoing on\nRun completed" in result.stdout


def test_an_answer_that_is_on_its_way_is_waited_for(waiting: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    def goes_on(_seconds: float) -> None:
        waiting.events = [event(1, "run_queued"), SUSPENDED, event(3, "run_resumed"), event(4, "run_completed")]
        waiting.run = a_run()

    monkeypatch.setattr(follow.time, "sleep", goes_on)
    monkeypatch.setattr(live, "SILENCE_SECONDS", 0.1)  # the socket of the fake stays silent; the log has the rest
    assert sandpiper(waiting, "run", "Fix it").exit_code == 0


class Answering(JsonView):
    """Lets the run go on when it is told that it waits."""

    def __init__(self, api: FakeApi) -> None:
        super().__init__(io.StringIO())
        self.api = api
        self.waited = 0

    def waiting(self, run: dict[str, Any]) -> None:
        assert run["status"] == "suspended"
        self.waited += 1
        self.api.events = [*self.api.events, event(3, "run_resumed"), event(4, "run_completed")]
        self.api.run = a_run()


def test_with_wait_a_suspended_run_is_followed_on(waiting: FakeApi) -> None:
    waiting.sockets = [SocketScript(then_cut=True)]
    view = Answering(waiting)
    with Api(waiting.url, TOKEN) as api:
        ended = follow.follow(api, RUN_ID, view, wait=True)
    assert (ended["status"], view.waited) == ("completed", 1)


def test_json_ends_with_the_suspended_run(waiting: FakeApi) -> None:
    result = sandpiper(waiting, "run", "Fix it", "--json")
    assert result.exit_code == 6
    assert json.loads(result.stdout.splitlines()[-1])["suspend_reason"] == "budget_exhausted"


def test_show_tells_how_to_go_on(waiting: FakeApi) -> None:
    assert f"sandpiper budget {RUN_ID}" in sandpiper(waiting, "show", RUN_ID).stdout


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ([], {}),
        (["--turns", "60"], {"max_turns": 60}),
        (
            ["--cost", "2.5", "--tokens", "1000000", "--seconds", "1800"],
            {"max_cost_usd": 2.5, "max_total_tokens": 1_000_000, "timeout_seconds": 1800},
        ),
    ],
)
def test_budget_sends_the_limits_that_were_given(waiting: FakeApi, options: list[str], body: dict[str, Any]) -> None:
    result = sandpiper(waiting, "budget", RUN_ID, *options)
    assert result.exit_code == 0
    assert waiting.bodies(f"/runs/{RUN_ID}/budget") == [body]
    assert f"{RUN_ID} may use 48 turns, 15 min 00 s of work in all" in result.stdout


def test_say_sends_the_words_and_the_key_as_a_header(waiting: FakeApi) -> None:
    result = sandpiper(waiting, "say", RUN_ID, "Use PostgreSQL", "--idempotency-key", "k")
    assert "was told (message 4)" in result.stdout
    assert waiting.bodies(f"/runs/{RUN_ID}/messages") == [{"text": "Use PostgreSQL"}]
    assert waiting.requests[0]["headers"]["idempotency-key"] == "k"


def test_resume_asks_for_it(waiting: FakeApi) -> None:
    assert f"sandpiper watch {RUN_ID}" in sandpiper(waiting, "resume", RUN_ID).stdout
    assert [request["path"] for request in waiting.requests] == [f"/runs/{RUN_ID}/resume"]


def test_usage_shows_a_month(api: FakeApi) -> None:
    result = sandpiper(api, "usage", "--month", "2026-10")
    assert result.stdout.split()[:12] == [
        "2026-10", "Runs", "2", "Turns", "9", "Tokens", "1,234", "in,", "300", "out", "Cost", "$1.2500",
    ]  # fmt: skip
    assert api.requests[0]["query"] == {"month": "2026-10"}


@pytest.mark.parametrize("command", [["budget", RUN_ID], ["say", RUN_ID, "Hi"], ["resume", RUN_ID], ["usage"]])
def test_json_is_the_answer_of_the_api(waiting: FakeApi, command: list[str]) -> None:
    assert json.loads(sandpiper(waiting, *command, "--json").stdout)["success"] is True
