"""Sandboxes that are taken away, replaced, or hang: real supervisor, wall and git; model and AWS are fakes."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.checkpoint import Checkpoint
from sandbox_task.control import Control
from sandbox_task.stopping import Stop
from sandpiper import limits
from sandpiper.errors import Fenced
from sandpiper.logic.outcomes import with_last_reply
from sandpiper.models.events import NewEvent
from sandpiper.models.run import Budget, Usage
from sandpiper.models.spec import RunSpec
from sandpiper.testing.fakes import FakeRuns, FakeWorkflow
from tests.unit.sandbox.mortal import MortalWorld
from tests.unit.sandbox.world import RUN_ID, TASK_TOKEN, World, done, plan, run, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.sandbox.git_server import GitServer

FILES = {"answer": "41\n", "check.sh": "grep -q 42 answer\n", ".gitignore": "node_modules/\n"}


@pytest.fixture
def mortal(open_dir: Path) -> MortalWorld:
    return MortalWorld(open_dir)


def spec(url: str | None, **more: Any) -> RunSpec:
    return RunSpec(**{"task": "Make it right", "type": "bug-fix", "repo": "o/r", "repo_url": url, **more})


def words(message: Any) -> str:
    return "\n".join(getattr(block, "text", "") or getattr(block, "content", "") for block in message.blocks)


def checkpoint_of(world: World) -> Checkpoint:
    return Checkpoint.model_validate_json(world.blobs.get(str(world.runs.get(RUN_ID).checkpoint_key)))


def after(condition: Callable[[], bool], action: Callable[[], None]) -> threading.Thread:
    def wait() -> None:
        while not condition():
            threading.Event().wait(0.005)
        action()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


# ---- taken away


def test_a_sandbox_that_is_told_to_go_hands_over_at_once_and_nothing_is_asked_twice(
    mortal: MortalWorld, git_server: GitServer
) -> None:
    turns = [plan(), write("answer", "42\n"), run("test -e node_modules || sleep 600; echo on >> answer"), done()]
    mortal.store(spec(git_server.create("r", FILES)))
    after(lambda: mortal.types.count("tool_started") == 3, lambda: mortal.stop.request("terminated"))
    mortal.live(turns)
    assert mortal.exit_code == 143
    assert mortal.workflow.failures[TASK_TOKEN][0] == "SandboxTerminated"
    assert with_last_reply(mortal.runs, RUN_ID).checkpoint_turn == 3
    mortal.replace()
    turns[2] = run("never asked")
    after(lambda: mortal.types.count("tool_started") == 4, lambda: mortal.stop.request("cancelled"))
    mortal.live(turns)
    assert len(mortal.asked) == 3
    assert "+42" in mortal.diff
    assert mortal.log.count("repo_clone_started") == 2


def test_the_working_time_of_a_lost_sandbox_is_counted(mortal: MortalWorld, git_server: GitServer) -> None:
    mortal.store(spec(git_server.create("r", FILES)))
    mortal.live([plan(), run("sleep 0.3"), done()], ends_at=16)
    mortal.replace()
    mortal.live([plan(), run("sleep 0.3"), done()])
    assert checkpoint_of(mortal).seconds_used > 0.3


@pytest.mark.parametrize("hours", [-5, 5])
def test_a_sandbox_whose_clock_is_wrong_does_its_work_and_is_fenced_like_any_other(
    mortal: MortalWorld, git_server: GitServer, hours: int
) -> None:
    turns = [plan(), run("echo on >> answer"), done()]
    mortal.store(spec(git_server.create("r", FILES), branch="work", timeout_seconds=600))
    mortal.clock.advance(hours * 3600)
    mortal.live(turns, ends_at=20)
    mortal.clock.advance(-hours * 3600)
    mortal.replace()
    mortal.live(turns)
    with pytest.raises(Fenced):
        mortal.runs.append(RUN_ID, [NewEvent(type="warning")], attempt=1)
    assert (mortal.exit_code, mortal.result.outcome) == (0, "completed")
    assert git_server.git("r", "show", "work:answer") == "41\non\n"
    assert [event.seq for event in mortal.events] == list(range(1, len(mortal.events) + 1))
    assert mortal.runs.usage_of("user", "2026-01").turns == mortal.result.usage.turns == len(turns)
    assert checkpoint_of(mortal).seconds_used < 600, "working time is counted by a clock that nobody sets"


def test_what_an_attempt_reported_counts_even_if_nothing_else_of_it_was_stored(
    mortal: MortalWorld, git_server: GitServer
) -> None:
    mortal.store(spec(git_server.create("r", FILES)))
    reported = Usage(turns=3, input_tokens=1_000, cost_usd=0.125)
    mortal.runs.change(RUN_ID, allowed=("provisioning",), changes={"usage": reported})
    mortal.live([plan(), write("answer", "42\n"), done()])
    used = Usage(turns=6, input_tokens=1_300, cost_usd=0.155)
    assert (mortal.result.usage, mortal.runs.get(RUN_ID).usage) == (used, used)


def test_what_the_model_must_know_after_a_loss_is_said_once(
    mortal: MortalWorld, git_server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REPLY_WORTH_SECONDS", 0.0)
    turns = [plan(), run("mkdir -p node_modules; echo x > node_modules/x"), write("answer", "42\n"), done()]
    mortal.store(spec(git_server.create("r", FILES)))
    killed = mortal.live(turns, ends_at=17)
    assert killed.events[-1] == "tool_started"
    mortal.replace()
    mortal.live(turns)
    said = [words(message) for message in mortal.asked[-1].messages if "new sandbox" in words(message)]
    assert len(said) == 1
    assert "its sandbox was lost" in said[0]
    assert "installed dependencies" in said[0]


# ---- replaced


@pytest.mark.parametrize("turn", [1, 2])
def test_an_attempt_that_was_replaced_moves_no_checkpoint_and_leaves_nothing(
    world: World, git_server: GitServer, turn: int
) -> None:
    known: list[Any] = []

    def replaced() -> list[Any]:
        changes = {"attempt": 2, "checkpoint_key": "theirs"}
        known.append(set(world.blobs.bodies))
        world.runs.change(RUN_ID, allowed=("running",), changes=changes)
        return run("echo 42 > answer")

    turns: list[Any] = [plan(), run("echo 1 > one"), run("echo 2 > two")]
    world.perform(spec(git_server.create("r", FILES)), [*turns[:turn], replaced, done()])
    assert world.exit_code == 3
    assert world.runs.get(RUN_ID).checkpoint_key == "theirs"
    assert {key for key in world.blobs.bodies if "/checkpoint" in key} <= known[0]
    assert world.workflow.answers == {}
    assert git_server.branches("r") == ["main"]


def test_an_attempt_that_was_replaced_before_it_pushes_pushes_nothing(world: World, git_server: GitServer) -> None:
    original = world.runs.revise

    def replaced_first(run_id: str, decide: Any) -> Any:
        """The sandbox has its proof and is about to note that it means to push."""
        world.runs.change(RUN_ID, allowed=("running",), changes={"attempt": 2})
        return original(run_id, decide)

    world.runs.revise = replaced_first  # type: ignore[method-assign]
    world.perform(spec(git_server.create("r", FILES)), [plan(), write("answer", "42\n"), done()])
    assert world.exit_code == 3
    assert git_server.branches("r") == ["main"]
    assert "commit_pushed" not in world.types


def test_an_attempt_whose_token_was_taken_answers_nothing(world: World, git_server: GitServer) -> None:
    def expire() -> list[Any]:
        world.workflow.expire(TASK_TOKEN)
        return done()

    world.perform(spec(git_server.create("r", FILES)), [plan(), write("answer", "42\n"), expire])
    assert world.exit_code == 3
    assert world.workflow.answers == {}


def test_a_branch_that_somebody_else_has_made_is_not_overwritten(world: World, git_server: GitServer) -> None:
    url = git_server.create("r", FILES)

    def theirs() -> list[Any]:
        git_server.push("r", {"answer": "theirs\n"}, branch="work")
        return done()

    world.perform(spec(url, branch="work"), [plan(), write("answer", "42\n"), theirs])
    assert world.result.error is not None
    assert "has moved" in world.result.error.message
    assert git_server.git("r", "show", "work:answer") == "theirs\n"


# ---- suspended


def test_a_resumed_run_finds_what_it_had_installed(world: World, git_server: GitServer) -> None:
    install = run(
        "mkdir -p node_modules/dep; echo 42 > node_modules/dep/x; git commit -qm own --allow-empty; git add -A"
    )
    files = {**FILES, ".sandpiper.yml": "setup: echo set-up >> node_modules_log\n"}
    world.perform(spec(git_server.create("r", files), max_turns=2), [plan(), install])
    model = world.go_on(
        [run("cat node_modules/dep/x; git log --oneline | wc -l; wc -l < node_modules_log"), done()],
        budget=Budget(max_turns=9),
    )
    assert "goes on now in a new sandbox" in words(model.requests[0].messages[-1])
    assert "background processes, the state of interpreters" in words(model.requests[0].messages[-1])
    assert words(model.requests[1].messages[-1]).startswith("42\n2\n1\n")


def test_a_workspace_that_is_too_large_is_told_and_resumed_without_what_git_ignores(
    world: World, git_server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox_task.workspace.snapshot.store.__kwdefaults__", {"at_most": 1000})
    turns = [plan(), run("mkdir -p node_modules; echo 42 > node_modules/x; echo 42 > answer")]
    world.perform(spec(git_server.create("r", FILES), max_turns=2), turns)
    assert "Only the files that git knows are kept" in world.told("warning")[-1]["message"]
    model = world.go_on([run("ls node_modules; cat answer"), done()], budget=Budget(max_turns=9))
    assert "what git ignores (installed dependencies" in words(model.requests[0].messages[-1])
    assert "42" in words(model.requests[1].messages[-1])
    assert "No such file" in words(model.requests[1].messages[-1])


# ---- stopped


def test_a_cancel_during_the_clone_ends_git(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        after(lambda: "repo_clone_started" in world.types, lambda: world.stop.request("cancelled"))
        world.perform(spec(f"http://127.0.0.1:{silent.getsockname()[1]}/r.git"), [])
    assert world.result.outcome == "cancelled"


def test_a_supervisor_that_does_not_end_when_it_is_told_to_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STOPPING_SECONDS", 0.05)
    stop, hung = Stop(), threading.Event()
    control = Control(
        FakeRuns(), FakeWorkflow(), stop, run_id="r", attempt=1, token="t", on_trouble=lambda _: None, on_hang=hung.set
    )
    monkeypatch.setattr(control, "_beat", lambda: None)
    monkeypatch.setattr(control, "_look", lambda: None)
    control.start()
    assert not hung.wait(0.2)
    stop.request("timed_out")
    assert hung.wait(10)
    control.close()


def test_the_inner_clock_always_fires_first() -> None:
    assert limits.DEFAULT_COMMAND_SECONDS < limits.DEFAULT_TIMEOUT_SECONDS
    assert limits.SNAPSHOT_SECONDS < limits.STOPPING_SECONDS < limits.FINISHING_SECONDS
    assert limits.CHECKPOINT_WAIT_SECONDS < limits.STOPPING_SECONDS
    assert 2 * limits.HEARTBEAT_EVERY_SECONDS < limits.HEARTBEAT_SECONDS


def test_a_sandbox_that_comes_back_after_the_end_appends_nothing(world: World, git_server: GitServer) -> None:
    world.perform(spec(git_server.create("r", FILES)), [plan(), done()])
    world.runs.change(RUN_ID, allowed=("running",), changes={"status": "completed"})
    with pytest.raises(Fenced):
        world.runs.append(RUN_ID, [], attempt=1)
