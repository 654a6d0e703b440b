"""`sandpiper` as a process of its own against the stack: what it prints, and what a script can tell from its end."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import httpx
import jwt
import pytest

from tests.e2e.command_line import SANDPIPER, CommandLine, bare_environment, call
from tests.e2e.sockets import SilentRun
from tests.e2e.support import (
    Person,
    finishes,
    git,
    make_repository,
    new_task,
    plans,
    shell,
    writes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Stack

NO_RUN = "run-" + "0" * 26
COMMANDS = ["demo", "up", "down", "token", "run", "watch", "runs", "show", "logs", "diff", "cancel", "health"]
ESCAPE = "\x1b"
HOSTILE = r"printf '\033]0;owned\007\033[2J\033[31mred\033[0m\rback\b\n'"


@pytest.fixture
def ann(stack: Stack) -> Iterator[Person]:
    with Person(stack) as person:
        yield person


@pytest.fixture
def sandpiper(ann: Person) -> CommandLine:
    return CommandLine(ann)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project", {"a.txt": "one\n"})


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# ---- run


def test_run_works_on_a_checkout_and_the_branch_arrives(stack: Stack, sandpiper: CommandLine, checkout: Path) -> None:
    task = new_task(stack, plans(), shell("cat a.txt"), writes("b.txt", "two\n"), finishes("b.txt is there."))
    done = sandpiper("run", "--repo", str(checkout), "--branch", "work/b", task)
    assert (done.returncode, done.stderr) == (0, "")
    assert git("show", "work/b:b.txt", at=checkout) == "two"
    for words in ("Queued", "Plan: Do it.", "$ cat a.txt", "    one", "exit 0", "Pushed to branch work/b", "+two"):
        assert words in done.stdout
    assert "b.txt is there." in done.stdout
    assert ESCAPE not in done.stdout


def test_run_prints_json_lines_that_count_and_end_with_the_run(
    stack: Stack, sandpiper: CommandLine, checkout: Path
) -> None:
    task = new_task(stack, plans(), writes("b.txt", "two\n"), finishes())
    done = sandpiper("run", "--repo", str(checkout), "--json", task)
    assert (done.returncode, done.stderr) == (0, "")
    *events, run = json_lines(done.stdout)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["type"], events[-1]["type"]) == ("run_queued", "run_completed")
    assert (run["status"], run["last_seq"]) == ("completed", len(events))


def test_a_run_that_fails_is_exit_code_1_with_the_reason(stack: Stack, sandpiper: CommandLine) -> None:
    task = new_task(stack, plans(), finishes("The well is dry.", status="blocked"))
    done = sandpiper("run", task)
    assert done.returncode == 1
    assert "The well is dry." in done.stdout


def test_a_repository_that_can_not_be_had_is_exit_code_1_in_words(stack: Stack, sandpiper: CommandLine) -> None:
    url = f"{stack.api_url}/git/0123456789abcdef/nothing.git"
    done = sandpiper("run", "--repo", url, "anything")
    assert done.returncode == 1
    assert "repository_error" in done.stdout


@pytest.mark.parametrize(("repo", "code"), [("./not-there", 2), ("/", 5), ("http://example.com/x", 5)])
def test_a_repo_that_is_none_is_refused_in_words(sandpiper: CommandLine, repo: str, code: int) -> None:
    done = sandpiper("run", "--repo", repo, "anything")
    assert done.returncode == code
    assert repo in done.stderr or "repo" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_following_only_the_run_is_named_and_a_key_gives_it_again(
    stack: Stack, ann: Person, sandpiper: CommandLine
) -> None:
    task = new_task(stack, plans(), finishes())
    first = sandpiper("run", "--no-follow", "--idempotency-key", "once", task)
    assert first.returncode == 0
    again = sandpiper("run", "--no-follow", "--json", "--idempotency-key", "once", task)
    assert json.loads(again.stdout)["run_id"] == first.stdout.strip()
    assert ann.end_of(first.stdout.strip())["status"] == "completed"
    assert len(ann.http.get("/runs").json()["runs"]) == 1


def test_ctrl_c_leaves_the_run_going_and_cancel_stops_it(stack: Stack, ann: Person, sandpiper: CommandLine) -> None:
    task = new_task(stack, plans(), shell("echo ready; sleep 600"), finishes())
    with sandpiper.started("run", "--json", task) as follower:
        assert follower.stdout is not None
        lines = iter(follower.stdout.readline, "")
        run_id = next(e["run_id"] for e in map(json.loads, lines) if e["type"] == "tool_output")
        follower.send_signal(signal.SIGINT)
        _, words = follower.communicate(timeout=30)
    assert follower.returncode == 130
    assert f"sandpiper cancel {run_id}" in words
    assert ann.run(run_id)["status"] == "running"
    assert sandpiper("cancel", run_id).returncode == 0
    assert ann.end_of(run_id)["status"] == "cancelled"
    assert sandpiper("watch", run_id).returncode == 1
    assert sandpiper("cancel", run_id).returncode == 0


# ---- what commands print reaches a terminal as text


def test_hostile_output_is_shown_and_not_obeyed(stack: Stack, sandpiper: CommandLine) -> None:
    task = new_task(stack, plans(), shell(HOSTILE), finishes("\x1b[2Jgone"))
    code, shown = sandpiper.in_a_terminal("run", task)
    assert code == 0
    assert ESCAPE in shown  # it is a terminal: our own colours are there
    for sequence in ("\x1b]0;", "\x1b[2J", "\x07", "\b"):
        assert sequence not in shown
    assert "␛[31mred␛[0m␍back␈" in shown
    assert "␛[2Jgone" in shown
    run_id = json.loads(sandpiper("runs", "--json").stdout)["runs"][0]["run_id"]
    code, shown = sandpiper.in_a_terminal("logs", run_id)
    assert (code, ESCAPE in shown) == (0, False)
    assert "␛[31mred␛[0m" in shown
    assert "␛[31mred␛[0m␍\n  | back␈" in sandpiper("logs", run_id).stdout  # in a file, too: it may be shown later


# ---- looking at runs


def test_a_finished_run_can_be_looked_at_in_every_way(
    stack: Stack, sandpiper: CommandLine, checkout: Path, tmp_path: Path
) -> None:
    task = new_task(stack, plans(), shell("echo unmistakable"), writes("b.txt", "two\n"), finishes())
    run_id = json_lines(sandpiper("run", "--repo", str(checkout), "--json", task).stdout)[-1]["run_id"]

    listed = sandpiper("runs", "--status", "completed")
    assert listed.stdout.split("\t")[:2] == [run_id, "completed"]
    assert task in listed.stdout
    assert sandpiper("runs", "--status", "failed").stdout.startswith("No runs yet")

    shown = sandpiper("show", run_id)
    assert f"{run_id} completed" in shown.stdout
    assert json.loads(sandpiper("show", "--json", run_id).stdout)["run_id"] == run_id

    file = tmp_path / "run.log"
    saved = sandpiper("logs", run_id, "-o", str(file))
    assert (saved.returncode, saved.stdout) == (0, "")
    assert "unmistakable" in file.read_text()
    assert sandpiper("logs", run_id).stdout == file.read_text()
    assert httpx.get(sandpiper("logs", "--url", run_id).stdout.strip(), timeout=30).text == file.read_text()

    patch = sandpiper("diff", run_id)
    assert "+two" in patch.stdout
    (tmp_path / "run.patch").write_text(patch.stdout)
    git("apply", "--check", str(tmp_path / "run.patch"), at=checkout)

    watched = sandpiper("watch", "--json", run_id, "--after", "3")
    assert [line.get("seq") for line in json_lines(watched.stdout)][:2] == [4, 5]
    assert watched.returncode == 0
    assert not any(ESCAPE in done.stdout for done in (listed, shown, patch, watched))


def test_health_says_how_it_is_without_a_token(stack: Stack) -> None:
    environment = bare_environment(SANDPIPER_ENDPOINT=stack.api_url)
    done = call("health", environment=environment)
    assert (done.returncode, done.stdout.split()[0]) == (0, "healthy")
    assert json.loads(call("health", "--json", environment=environment).stdout)["status"] == "healthy"


@pytest.mark.parametrize("command", ["show", "logs", "diff", "cancel", "watch"])
def test_an_unknown_run_is_exit_code_5_and_named(sandpiper: CommandLine, command: str) -> None:
    done = sandpiper(command, NO_RUN)
    assert (done.returncode, done.stdout) == (5, "")
    assert NO_RUN in done.stderr
    assert "not_found" in done.stderr


@pytest.mark.parametrize("command", ["show", "watch"])
def test_somebody_elses_run_is_unknown(stack: Stack, sandpiper: CommandLine, command: str) -> None:
    done = sandpiper(command, SilentRun(stack, "bob").run_id)
    assert (done.returncode, done.stdout) == (5, "")


# ---- who asks, and where


def test_with_the_state_directory_alone_everything_is_found(stack: Stack) -> None:
    environment = bare_environment(SANDPIPER_STATE_DIR=str(stack.state_dir))
    assert call("runs", environment=environment).returncode == 0
    assert call("--state-dir", str(stack.state_dir), "runs", environment=bare_environment()).returncode == 0
    assert call("runs", "--state-dir", str(stack.state_dir), environment=bare_environment()).returncode == 0


def test_a_token_works_with_any_client_and_says_what_was_asked(stack: Stack) -> None:
    environment = bare_environment(SANDPIPER_STATE_DIR=str(stack.state_dir))
    words = ["--user", "dora", "--org", "explorers", "--scope", "runs:read", "--scope", "runs:write", "--ttl", "60"]
    token = call("token", *words, environment=environment).stdout.strip()
    claims = jwt.decode(token, options={"verify_signature": False})
    assert (claims["sub"], claims["org"], claims["scope"]) == ("dora", "explorers", "runs:read runs:write")
    assert claims["exp"] - claims["iat"] == 60
    answer = httpx.get(f"{stack.api_url}/runs", headers={"Authorization": f"Bearer {token}"}, timeout=30)
    assert (answer.status_code, answer.json()["runs"]) == (200, [])


def test_a_token_that_is_refused_is_exit_code_5(stack: Stack) -> None:
    environment = bare_environment(SANDPIPER_ENDPOINT=stack.api_url, SANDPIPER_TOKEN="rubbish")
    done = call("runs", environment=environment)
    assert done.returncode == 5
    assert "token was refused" in done.stderr


@pytest.mark.parametrize("command", [["runs"], ["run", "x"], ["health"], ["token"], ["down"]])
def test_where_nothing_runs_the_exit_code_is_3_with_a_hint(tmp_path: Path, command: list[str]) -> None:
    done = call(*command, environment=bare_environment(SANDPIPER_STATE_DIR=str(tmp_path)))
    assert (done.returncode, done.stdout) == (3, "")
    assert str(tmp_path) in done.stderr
    assert "sandpiper up" in done.stderr or command == ["down"]


def test_where_nobody_answers_any_more_the_exit_code_is_3(tmp_path: Path) -> None:
    (tmp_path / "local.json").write_text(json.dumps({"api_url": "http://127.0.0.1:9"}))
    (tmp_path / "jwt_secret").write_text("a secret that is long enough for HS256")
    done = call("runs", environment=bare_environment(SANDPIPER_STATE_DIR=str(tmp_path)))
    assert done.returncode == 3
    assert "nobody answers at http://127.0.0.1:9" in done.stderr


# ---- help


def test_sandpiper_is_installed_beside_python_and_lists_its_commands() -> None:
    assert SANDPIPER.exists()
    done = call("--help", environment=bare_environment())
    assert done.returncode == 0
    assert all(f" {command} " in done.stdout for command in COMMANDS)
    assert ESCAPE not in done.stdout


def test_a_wrong_option_is_exit_code_2() -> None:
    assert call("run", "--colour", environment=bare_environment()).returncode == 2
