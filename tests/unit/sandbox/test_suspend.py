"""Runs that have to wait and go on in another sandbox: real supervisor, wall and git; the model and AWS are fakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.models.run import Budget
from sandpiper.models.spec import RunSpec
from tests.unit.sandbox.git_server import TOKEN, GitServer
from tests.unit.sandbox.world import RUN_ID, World, done, plan, run, write

if TYPE_CHECKING:
    from sandbox_task.model.port import Message

FILES = {
    "answer": "41\n",
    "check.sh": "grep -q 42 answer\n",
    "gone": "x\n",
    ".sandpiper.yml": "checks: ['sh check.sh']\n",
}


def spec(url: str, **more: Any) -> RunSpec:
    return RunSpec(**{"task": "Make the answer right", "type": "bug-fix", "repo": "o/r", "repo_url": url, **more})


def words(message: Message) -> str:
    return "\n".join(str(getattr(block, "text", getattr(block, "content", ""))) for block in message.blocks)


@pytest.mark.parametrize("limit", [{"max_turns": 3}, {"max_cost_usd": 0.03}, {"max_total_tokens": 330}])
def test_a_budget_that_runs_out_suspends_the_run_and_it_goes_on_once_it_is_raised(
    world: World, git_server: GitServer, limit: dict[str, Any]
) -> None:
    url = git_server.create("r", FILES)
    first = world.perform(spec(url, **limit), [plan(), write("answer", "42\n"), run("rm gone; echo new > 'a new one'")])
    assert (world.result.outcome, world.result.suspend_reason) == ("suspended", "budget_exhausted")
    assert world.workflow.answers[world.task_token]["outcome"] == "suspended"
    assert world.result.error is None
    assert "+42" in world.diff
    assert world.runs.get(RUN_ID).usage.turns == 3
    raised = Budget(**{name: value * 10 for name, value in limit.items()})
    second = world.go_on([run("cat answer 'a new one'; ls gone"), done("It is 42.")], budget=raised)
    assert world.result.outcome == "completed"
    assert second.requests[0].messages[: len(first.requests[-1].messages)] == first.requests[-1].messages
    assert "interrupted" in words(second.requests[0].messages[-1])
    seen = words(second.requests[1].messages[-1])
    assert "42\nnew\n" in seen
    assert "gone" in seen
    assert world.result.usage.turns == 5
    assert world.result.usage.cost_usd == pytest.approx(0.05)
    assert world.result.commit is not None
    assert git_server.git("r", "show", f"{world.result.commit.branch}:answer") == "42\n"
    assert sorted(git_server.git("r", "ls-tree", "--name-only", world.result.commit.branch).split("\n")) == sorted(
        ["", ".sandpiper.yml", "a new one", "answer", "check.sh"]
    )


def test_a_limit_that_was_not_raised_suspends_the_run_again_before_any_call(
    world: World, git_server: GitServer
) -> None:
    world.perform(spec(git_server.create("r", FILES), max_turns=1), [plan()])
    model = world.go_on([])
    assert model.requests == []
    assert world.result.suspend_reason == "budget_exhausted"


def test_a_question_waits_without_a_sandbox_and_its_answer_is_what_the_call_returns(
    world: World, git_server: GitServer
) -> None:
    ask = [("ask_user", {"question": "41 or 42?"}), ("run_command", {"command": "echo looked > seen"})]
    world.perform(spec(git_server.create("r", FILES)), [plan(), ask])
    result = world.result
    assert (result.outcome, result.suspend_reason, result.question) == ("suspended", "awaiting_input", "41 or 42?")
    world.runs.put_control(RUN_ID, {"action": "message", "by": "ann", "data": {"text": "42, please."}})
    model = world.go_on([write("answer", "42\n"), done()])
    answered = words(model.requests[0].messages[-1])
    assert answered.startswith("42, please.")
    assert world.told("tool_completed")[-1]["tool"] == "finish"
    assert [data["command"] for data in world.told("tool_completed") if data["tool"] == "run_command"] == [
        "echo looked > seen"
    ]
    assert world.result.outcome == "completed"


def test_the_log_of_a_resumed_run_begins_at_its_beginning(world: World, git_server: GitServer) -> None:
    world.perform(spec(git_server.create("r", FILES), max_turns=2), [plan(), run("echo first part")])
    world.go_on([run("echo second part"), done()], budget=Budget(max_turns=9))
    log = world.log
    assert log.index("first part") < log.index("second part")
    assert log.count("repo_clone_started") == 2


def test_a_repair_that_was_interrupted_goes_on_as_a_repair(world: World, git_server: GitServer) -> None:
    url = git_server.create("r", {**FILES, "check.sh": "! grep -q broken answer\n"})
    turns = [plan(), write("answer", "broken\n"), done()]
    world.perform(spec(url, max_turns=3), turns)
    assert world.types.count("gate_repair_started") == 1
    world.go_on([done("Still."), write("answer", "42\n"), done("Repaired.")], budget=Budget(max_turns=9))
    assert (world.result.outcome, world.result.summary) == ("completed", "Repaired.")
    assert world.types.count("gate_repair_started") == 2


def test_a_setup_that_runs_again_in_the_next_sandbox_does_not_undo_the_work(
    world: World, git_server: GitServer
) -> None:
    setup = {"lock": "1\n", ".sandpiper.yml": "setup: echo 2 >> lock; echo made > generated\n"}
    undo = run("echo 1 > lock; rm generated; echo 42 > answer")
    world.perform(spec(git_server.create("r", {**FILES, **setup}), max_turns=2), [plan("test -e answer"), undo])
    model = world.go_on([run("cat lock; ls"), done()], budget=Budget(max_turns=9))
    assert "generated" not in words(model.requests[1].messages[-1])
    assert words(model.requests[1].messages[-1]).startswith("1\nanswer")
    assert world.result.commit is not None
    assert git_server.git("r", "diff", "--name-only", "main", world.result.commit.branch).split() == ["answer"]


def test_what_was_known_to_be_broken_before_is_not_asked_again_after_a_wait(
    world: World, git_server: GitServer
) -> None:
    world.perform(spec(git_server.create("r", FILES), max_turns=2), [plan(), write("other", "x\n")])
    assert world.types.count("gate_baseline_completed") == 1
    world.go_on([done()], budget=Budget(max_turns=9))
    assert world.types.count("gate_baseline_completed") == 1
    assert world.result.gate is not None
    assert world.result.gate.checks[0].status == "known_broken"


def test_the_base_stays_what_it_was_when_the_branch_has_moved_meanwhile(world: World, git_server: GitServer) -> None:
    url = git_server.create("r", FILES)
    base = git_server.git("r", "rev-parse", "main").strip()
    world.perform(spec(url, max_turns=2), [plan(), write("answer", "42\n")])
    git_server.push("r", {"elsewhere": "new\n"})
    world.go_on([done()], budget=Budget(max_turns=9))
    assert world.result.commit is not None
    assert git_server.git("r", "rev-parse", f"{world.result.commit.branch}^").strip() == base


def test_an_attempt_that_is_no_longer_the_one_moves_no_checkpoint(world: World, git_server: GitServer) -> None:
    def taken_over() -> list[Any]:
        world.runs.change(RUN_ID, allowed=("running",), changes={"attempt": 2})
        return write("answer", "42\n")

    world.perform(spec(git_server.create("r", FILES), max_turns=2), [plan(), taken_over])
    assert world.exit_code == 3
    assert world.runs.get(RUN_ID).checkpoint_key is None
    assert world.workflow.answers == {}


def test_a_checkpoint_holds_no_secret(world: World, git_server: GitServer) -> None:
    turns = [plan(), [("write_file", {"path": "leak", "content": f"x {TOKEN} y"}), ("read_file", {"path": "leak"})]]
    world.perform(spec(git_server.create("r", FILES), max_turns=2), turns)
    states = [body for key, body in world.blobs.bodies.items() if key.endswith("state.json")]
    assert len(states) == 1
    assert TOKEN.encode() not in states[0]
