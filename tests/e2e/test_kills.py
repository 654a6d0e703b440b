"""Kill -9 and SIGTERM of the real sandbox on the embedded AWS: the run ends like one that was left alone."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.e2e.faults import Played, Script, assert_same, kill_at, kill_sandbox
from tests.e2e.support import Person, finishes, of_type, plans, sandbox_processes, shell, types_of, wait_for, writes

if TYPE_CHECKING:
    from tests.e2e.conftest import Stack

FILES = {"check.sh": "! test -e steps\n", "a.txt": "a\n", ".gitignore": "built\n"}
# Each step appends, so that one which is done twice, or on another tree than it had, shows in the end.
REPLIES = (
    plans("sh check.sh"),
    shell("echo one >> steps; sleep 0.2"),
    shell("echo two >> steps; touch built"),
    writes("b.txt", "b\n"),
    shell("mkdir d; mv steps d; echo three >> d/steps"),
    finishes("After all."),
)


@pytest.fixture(scope="module")
def script(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Script:
    return Script(stack, tmp_path_factory.mktemp("kills"), FILES, REPLIES)


@pytest.fixture(scope="module")
def calm(script: Script) -> Played:
    played = script.run()
    assert played.outcome == ("completed", "After all.", "passed")
    assert (played.requests, played.commits) == (len(REPLIES), 1)
    return played


@pytest.mark.parametrize(
    ("event", "nth"),
    [
        ("repo_clone_started", 1),
        ("agent_turn_started", 3),
        ("tool_started", 2),
        ("gate_check_started", 1),
        ("commit_created", 1),
    ],
)
def test_a_run_whose_sandbox_is_killed_ends_like_one_that_was_left_alone(
    script: Script, calm: Played, event: str, nth: int
) -> None:
    killed = script.run(kill_at(event, nth=nth))
    assert_same(killed, calm, kills=1)
    assert killed.run["attempt"] == 2


def test_a_run_that_is_killed_twice_tells_what_was_kept(script: Script, calm: Played) -> None:
    killed = script.run(kill_at("tool_started", nth=3), kill_at("agent_finished"))
    assert_same(killed, calm, kills=2)
    first, second = of_type(killed.events, "run_recovered")
    assert 2 <= first["kept_turns"] <= second["kept_turns"] <= len(REPLIES)
    assert types_of(killed.events).count("gate_completed") >= 1


def test_a_sandbox_that_is_told_to_go_hands_over(script: Script, calm: Played) -> None:
    told = script.run(kill_at("tool_started", nth=2, number=signal.SIGTERM))
    assert_same(told, calm, kills=1)
    assert of_type(told.events, "run_recovered")[0]["error"] == "SandboxTerminated"


def test_of_two_sandboxes_of_one_run_the_older_one_does_nothing_any_more(
    script: Script, calm: Played, stack: Stack
) -> None:
    """It is stopped in the middle of its work (as by a machine that sleeps), replaced, and wakes up again."""
    asleep: list[int] = []

    def freeze(person: Person, run_id: str) -> None:
        kill_at("tool_started", nth=2, number=signal.SIGSTOP)(person, run_id)
        asleep.extend(pid for pid, attempt in sandbox_processes(run_id).items() if attempt == 1)
        for pid in asleep:
            os.kill(pid, signal.SIGSTOP)
        token = token_of(stack, run_id)
        stack.aws("stepfunctions").send_task_failure(taskToken=token, error="SandboxLost", cause="asleep")

    def wake(person: Person, run_id: str) -> None:
        wait_for(lambda: True if len(of_type(person.events(run_id), "run_started")) == 2 else None)
        for pid in asleep:
            os.kill(pid, signal.SIGCONT)

    both = script.run(freeze, wake)
    assert_same(both, calm, kills=2)
    kill_sandbox(both.run["run_id"], attempt=1)


def token_of(stack: Stack, run_id: str) -> str:
    """Of the first attempt."""
    ecs, cluster = stack.aws("ecs"), stack.outputs["ClusterArn"]
    tasks = ecs.list_tasks(cluster=cluster, startedBy=run_id)["taskArns"]
    (task,) = ecs.describe_tasks(cluster=cluster, tasks=tasks)["tasks"]
    environment = task["overrides"]["containerOverrides"][0]["environment"]
    return str(next(entry["value"] for entry in environment if entry["name"] == "TASK_TOKEN"))
