"""A run that asks before it does something: what is shown, and the commands that answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from sandpiper_cli import follow
from sandpiper_cli.approvals import approval_lines
from sandpiper_cli.main import app
from tests.unit.cli.fake_api import RUN_ID, TOKEN, FakeApi, a_run, event

if TYPE_CHECKING:
    from typer.testing import Result

APPROVAL: dict[str, Any] = {
    "id": "ap-1",
    "tool": "run_command",
    "shown": {"command": "git push\n# \x1b[2Jquietly", "cwd": "sub"},
    "reason": "It pushes.",
    "risk": "high",
    "kind": "push",
    "requested_at": "2026-11-18T06:00:00Z",
}
ASKED = {"approval_id": "ap-1", "tool": "run_command", "call": "c1", "reason": "It pushes.", "risk": "high"}
COMMANDS = (f"sandpiper approve {RUN_ID} ap-1", f'sandpiper reject {RUN_ID} ap-1 --note "why"')


def sandpiper(api: FakeApi, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--endpoint", api.url, "--token", TOKEN])


@pytest.fixture
def asking(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    monkeypatch.setattr(follow.time, "sleep", lambda _seconds: None)
    api.run = a_run(status="suspended", suspend_reason="awaiting_approval", approval=APPROVAL)
    api.events = [event(1, "run_suspended", reason="awaiting_approval")]
    return api


def test_a_request_is_shown_whole_with_its_reason_its_risk_and_the_commands_that_answer(api: FakeApi) -> None:
    api.events = [
        event(1, "approval_requested", **ASKED, command="git push\n# \x1b[2Jquietly", cwd="sub"),
        event(2, "approval_resolved", approval_id="ap-1", decision="reject", by="ann", note="Not now", scope="call"),
        event(3, "approval_resolved", approval_id="ap-2", decision="approve", by="ann", scope="run"),
        event(4, "approval_expired", approval_id="ap-3"),
        event(5, "run_completed"),
    ]
    shown = sandpiper(api, "watch", RUN_ID).stdout
    assert "Approval wanted (high risk): It pushes.\n    git push\n    # ␛[2Jquietly\n    in sub\n" in shown
    assert all(command in shown for command in COMMANDS)
    assert "Rejected by ann: Not now\nApproved by ann for the rest of the run\nNobody approved it in time" in shown


def test_what_would_be_typed_is_shown_with_its_keys(api: FakeApi) -> None:
    typed = {**ASKED, "tool": "send_input", "process": "p1", "text": "DROP TABLE users;", "keys": ["enter", "ctrl-d"]}
    api.events = [event(1, "approval_requested", **typed), event(2, "run_completed")]
    assert "\n    DROP TABLE users; <enter> <ctrl-d>\n" in sandpiper(api, "watch", RUN_ID).stdout


def test_what_would_stand_in_a_file_is_shown_below_its_path() -> None:
    lines = approval_lines(RUN_ID, "ap-1", {"path": ".sandpiper.yml", "content": "setup:\n- \x1b[2Jx\n"})
    assert [text for _, text in lines[1:4]] == ["    .sandpiper.yml", "    | setup:", "    | - ␛[2Jx"]


@pytest.mark.parametrize("command", [["watch", RUN_ID], ["show", RUN_ID]])
def test_a_run_that_waits_for_an_approval_shows_what_it_wants(asking: FakeApi, command: list[str]) -> None:
    result = sandpiper(asking, *command)
    assert f"{RUN_ID} is suspended: it waits for your approval." in result.stdout
    assert "    git push\n" in result.stdout
    assert all(command in result.stdout for command in COMMANDS)


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (["approve", RUN_ID], {"decision": "approve", "scope": "call"}),
        (["approve", RUN_ID, "ap-1", "--for-run"], {"decision": "approve", "scope": "run"}),
        (["reject", RUN_ID, "--note", "Not now"], {"decision": "reject", "note": "Not now"}),
    ],
)
def test_the_answer_goes_to_the_request_that_waits(asking: FakeApi, words: list[str], body: dict[str, str]) -> None:
    result = sandpiper(asking, *words)
    assert result.exit_code == 0
    assert "ap-1 is " in result.stdout
    assert asking.bodies(f"/runs/{RUN_ID}/approvals/ap-1") == [body]


@pytest.mark.parametrize("command", ["approve", "reject"])
def test_nothing_to_answer_is_said(api: FakeApi, command: str) -> None:
    result = sandpiper(api, command, RUN_ID)
    assert (result.exit_code, "asks for no approval" in result.stderr) == (5, True)


def test_a_pause_is_asked_for(api: FakeApi) -> None:
    api.run = a_run(status="running")
    assert f"sandpiper resume {RUN_ID}" in sandpiper(api, "pause", RUN_ID, "--now").stdout
    assert api.bodies(f"/runs/{RUN_ID}/pause") == [{"now": True}]


@pytest.mark.parametrize("command", ["approve", "reject", "pause"])
def test_json_is_the_answer_of_the_api(asking: FakeApi, command: str) -> None:
    assert json.loads(sandpiper(asking, command, RUN_ID, "--json").stdout)["success"] is True
