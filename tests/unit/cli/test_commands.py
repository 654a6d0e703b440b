"""The commands as a person or a script calls them, against the fake API."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import jwt
import pytest
from typer.testing import CliRunner

from sandpiper_cli.main import app
from tests.unit.cli.fake_api import RUN_ID, TOKEN, FakeApi, a_run, event

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

SECRET = "a secret of the local stack, long enough"
RESULT = {
    "outcome": "completed",
    "summary": "Fixed.",
    "gate": {
        "status": "passed",
        "summary": "1 of 1 passed",
        "checks": [{"command": "pytest -q", "status": "passed", "duration_ms": 1200}],
    },
    "commit": {"sha": "0123456789abcdef", "branch": "fix/it", "message": "fix: it", "pushed": True},
    "diff_stat": {"files": 1, "insertions": 2, "deletions": 1},
    "usage": {"turns": 3, "input_tokens": 1200, "output_tokens": 300, "cost_usd": 0.0123},
}
DIFF = b"--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old\n+new\n"


def sandpiper(api: FakeApi, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--endpoint", api.url, "--token", TOKEN])


@pytest.fixture
def completed(api: FakeApi) -> FakeApi:
    api.run = a_run(result=RESULT)
    api.events = [event(1, "run_queued"), event(2, "agent_message", text="I fix it."), event(3, "run_completed")]
    api.files = {"diff": DIFF, "logs": b"line\n" * 1000}
    return api


@pytest.fixture
def local(api: FakeApi, tmp_path: Path) -> FakeApi:
    state = tmp_path / "state"
    state.mkdir()
    (state / "local.json").write_text(json.dumps({"api_url": api.url}))
    (state / "jwt_secret").write_text(SECRET)
    return api


def test_a_run_is_followed_to_its_end(completed: FakeApi) -> None:
    result = sandpiper(completed, "run", "--repo", "owner/repo", "Fix it")
    assert result.exit_code == 0, result.output
    for shown in ("I fix it.", "Gate    passed", "fix/it at 0123456789ab (pushed)", "$0.0123", "+new", "signature=abc"):
        assert shown in result.output
    assert "\x1b" not in result.output


def test_only_the_options_that_were_given_are_sent(completed: FakeApi) -> None:
    sandpiper(completed, "run", "Fix it", "--no-follow")
    options = ["--type", "bug-fix", "--model", "opus", "--branch", "b", "--base", "main", "--no-commit"]
    options += ["--max-turns", "5", "--timeout", "60", "--repo", "owner/repo", "--max-cost", "2.5", "--gate", "strict"]
    sandpiper(completed, "run", "Fix it", "--no-follow", *options)
    assert completed.bodies("/execute") == [
        {"task": "Fix it"},
        {
            "task": "Fix it", "type": "bug-fix", "model": "opus", "branch": "b", "base": "main", "shouldCommit": False,
            "max_turns": 5, "timeoutSeconds": 60, "repo": "owner/repo", "max_cost_usd": 2.5, "gate_mode": "strict",
        },
    ]  # fmt: skip


def test_no_follow_prints_the_id_and_nothing_else(completed: FakeApi) -> None:
    assert sandpiper(completed, "run", "Fix it", "--no-follow").stdout == f"{RUN_ID}\n"


def test_keys_travel_as_headers(completed: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDPIPER_GITHUB_TOKEN", "gh-secret")
    sandpiper(completed, "run", "Fix it", "--no-follow", "--idempotency-key", "k1")
    headers = completed.requests[0]["headers"]
    assert (headers["idempotency-key"], headers["x-github-token"]) == ("k1", "gh-secret")


def test_json_is_one_event_per_line_and_the_run_at_the_end(completed: FakeApi) -> None:
    lines = [json.loads(line) for line in sandpiper(completed, "run", "Fix it", "--json").stdout.splitlines()]
    assert [line["seq"] for line in lines[:-1]] == [1, 2, 3]
    assert lines[:-1] == completed.events
    assert lines[-1] == completed.run | {"last_seq": 3}


@pytest.mark.parametrize("status", ["failed", "cancelled", "timed_out"])
def test_a_run_that_did_not_complete_is_exit_code_1_and_says_which(api: FakeApi, status: str) -> None:
    api.run = a_run(status=status, error={"type": "gate_failed", "message": "The gate is red."})
    api.events = [event(1, f"run_{status}", error={"type": "gate_failed", "message": "The gate is red."})]
    result = sandpiper(api, "watch", RUN_ID)
    assert result.exit_code == 1
    assert f"{status.replace('_', ' ')}: The gate is red. (gate_failed)" in result.stdout


def test_ctrl_c_leaves_the_run_going_and_says_how_to_go_on(api: FakeApi) -> None:
    api.run = a_run(status="running")
    api.events = [event(1, "run_queued")]
    command = [sys.executable, "-m", "sandpiper_cli.main", "run", "Fix it", "--endpoint", api.url, "--token", TOKEN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "Queued\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"sandpiper watch {RUN_ID}" in told
    assert f"sandpiper cancel {RUN_ID}" in told
    assert not [request for request in api.requests if request["path"].endswith("/cancel")]


def test_watch_begins_where_it_is_told(completed: FakeApi) -> None:
    result = sandpiper(completed, "watch", RUN_ID, "--after", "2", "--json")
    assert [json.loads(line).get("seq") for line in result.stdout.splitlines()] == [3, None]


def test_logs_go_to_stdout_to_a_file_or_as_url(completed: FakeApi, tmp_path: Path) -> None:
    target = tmp_path / "run.log"
    assert sandpiper(completed, "logs", RUN_ID).stdout == "line\n" * 1000
    assert sandpiper(completed, "logs", RUN_ID, "-o", str(target)).exit_code == 0
    assert target.read_bytes() == b"line\n" * 1000
    assert sandpiper(completed, "logs", RUN_ID, "--url").stdout == f"{completed.url}/files/logs?signature=abc\n"


def test_a_presigned_url_is_fetched_without_our_token(completed: FakeApi) -> None:
    sandpiper(completed, "logs", RUN_ID)
    (fetched,) = [request for request in completed.requests if request["path"].startswith("/files/")]
    assert "authorization" not in fetched["headers"]


def test_a_diff_in_a_pipe_is_the_patch_byte_for_byte(completed: FakeApi) -> None:
    assert sandpiper(completed, "diff", RUN_ID).stdout_bytes == DIFF


def test_runs_are_listed_with_the_filters_that_were_given(completed: FakeApi) -> None:
    result = sandpiper(completed, "runs", "--status", "failed", "--limit", "5")
    assert RUN_ID in result.stdout
    assert completed.requests[0]["query"] == {"status": "failed", "limit": "5"}


def test_show_tells_of_one_run(completed: FakeApi) -> None:
    result = sandpiper(completed, "show", RUN_ID)
    assert "Fix it" in result.stdout
    assert "3 turns" in result.stdout
    assert json.loads(sandpiper(completed, "show", RUN_ID, "--json").stdout)["run_id"] == RUN_ID


def test_cancel_asks_for_it(completed: FakeApi) -> None:
    assert sandpiper(completed, "cancel", RUN_ID).exit_code == 0
    assert completed.requests[0]["path"] == f"/runs/{RUN_ID}/cancel"


def test_health_needs_no_token(api: FakeApi) -> None:
    result = CliRunner().invoke(app, ["health", "--endpoint", api.url])
    assert result.exit_code == 0
    assert "database: True" in result.stdout


def test_an_error_of_the_api_is_told_in_its_words_with_exit_code_5(api: FakeApi) -> None:
    details = [{"field": "params.repo", "message": "must be owner/repo"}]
    error = {"type": "validation_error", "message": "The request is wrong.", "request_id": "r-7", "details": details}
    api.failures = [(422, error)]
    result = sandpiper(api, "run", "Fix it")
    assert result.exit_code == 5
    assert result.stdout == ""
    assert "The request is wrong. (validation_error)\n  params.repo: must be owner/repo\n  request r-7" in result.stderr


def test_an_endpoint_without_a_token_is_a_mistake_of_usage(api: FakeApi) -> None:
    assert CliRunner().invoke(app, ["runs", "--endpoint", api.url]).exit_code == 2


def test_without_a_running_stack_it_says_how_to_start_one() -> None:
    result = CliRunner().invoke(app, ["runs"])
    assert result.exit_code == 3
    assert "sandpiper up" in result.stderr


def test_a_stack_that_died_is_not_running() -> None:
    with FakeApi() as gone:
        url = gone.url
    result = CliRunner().invoke(app, ["runs", "--endpoint", url, "--token", TOKEN])
    assert (result.exit_code, "nobody answers" in result.stderr) == (3, True)


def test_connection_options_work_before_the_command_and_lose_to_those_after_it(completed: FakeApi) -> None:
    before = ["--endpoint", "http://127.0.0.1:1", "--token", TOKEN]
    assert CliRunner().invoke(app, [*before, "runs", "--endpoint", completed.url]).exit_code == 0
    from_outside = {"SANDPIPER_ENDPOINT": completed.url, "SANDPIPER_TOKEN": TOKEN}
    assert CliRunner().invoke(app, ["runs"], env=from_outside).exit_code == 0


def test_a_token_has_the_claims_that_were_asked_for(local: FakeApi) -> None:
    arguments = ["token", "--user", "ada", "--org", "lab", "--scope", "a", "--scope", "b", "--ttl", "60"]
    minted = CliRunner().invoke(app, arguments).stdout.strip()
    claims = jwt.decode(minted, SECRET, algorithms=["HS256"])
    assert (claims["sub"], claims["org"], claims["scope"]) == ("ada", "lab", "a b")
    assert claims["exp"] - claims["iat"] == 60
    assert claims["exp"] > time.time()


def test_the_stack_that_runs_here_is_found_and_gets_a_token_of_our_own(local: FakeApi) -> None:
    CliRunner().invoke(app, ["runs"])
    sent = local.requests[0]["headers"]["authorization"].removeprefix("Bearer ")
    assert jwt.decode(sent, SECRET, algorithms=["HS256"])["sub"] == "local"


def test_a_local_checkout_is_sent_as_absolute_path(
    completed: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path)
    for named in ("./project", "project", str(tmp_path / "project")):
        sandpiper(completed, "run", "Fix it", "--no-follow", "--repo", named)
    assert [body["repo"] for body in completed.bodies("/execute")] == [str(tmp_path / "project")] * 3


def test_a_local_checkout_is_refused_for_a_remote_endpoint(tmp_path: Path) -> None:
    arguments = ["run", "Fix it", "--repo", str(tmp_path), "--endpoint", "https://api.example.com", "--token", "t"]
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, "is on this machine" in result.stderr) == (2, True)


def test_a_checkout_that_is_not_there_is_a_mistake_of_usage(api: FakeApi) -> None:
    result = sandpiper(api, "run", "Fix it", "--repo", "./no-such-project")
    assert (result.exit_code, result.stderr) == (2, "./no-such-project is not a directory\n")
    assert not api.requests


def test_down_without_a_stack_says_so(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["down", "--state-dir", str(tmp_path)])
    assert (result.exit_code, "nothing is running" in result.stderr) == (3, True)


@pytest.mark.parametrize(
    "command",
    [
        "demo", "up", "down", "token", "run", "watch", "runs", "show", "logs", "diff", "cancel", "health",
        "budget", "say", "resume", "usage", "approve", "reject", "pause", "quota",
    ],
)  # fmt: skip
def test_every_command_explains_itself(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"{command} [OPTIONS]" in result.output


def test_the_version_is_told_without_a_stack() -> None:
    told = CliRunner().invoke(app, ["--version"])

    assert (told.exit_code, told.stdout.split()[0]) == (0, "sandpiper")


@pytest.mark.parametrize(
    "endpoint", ["localhost:8787", "ftp://example.com", "https://", "https://host:port", "nonsense"]
)
def test_an_endpoint_that_is_no_url_is_a_mistake_of_usage(endpoint: str) -> None:
    result = CliRunner().invoke(app, ["runs", "--endpoint", endpoint, "--token", "t"])
    assert (result.exit_code, result.stderr) == (2, f"{endpoint} is no http or https URL\n")


@pytest.mark.parametrize("token", ["two\nlines", "gebühr", "\x1b[31m"])
def test_a_token_that_can_not_be_sent_is_told_without_showing_it(api: FakeApi, token: str) -> None:
    result = CliRunner().invoke(app, ["runs", "--endpoint", api.url, "--token", token])
    assert (result.exit_code, "the token" in result.stderr, token in result.stderr) == (2, True, False)
    assert not api.requests


def test_space_around_a_token_is_none_of_it(api: FakeApi) -> None:
    result = CliRunner().invoke(app, ["runs", "--endpoint", api.url, "--token", f" {TOKEN}\n"])
    assert result.exit_code == 0


def test_a_key_that_can_not_be_sent_is_a_mistake_of_usage(api: FakeApi) -> None:
    result = sandpiper(api, "run", "--idempotency-key", "schlüssel", "Fix it")
    assert (result.exit_code, "Idempotency-Key" in result.stderr) == (2, True)
    assert not api.requests
