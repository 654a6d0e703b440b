"""Kill -9 and SIGTERM of the real sandbox on the embedded AWS: the run ends like one that was left alone.

All runs of this file go on side by side, each of its own person. `SANDPIPER_FAULT_SEED` repeats the random ones.
"""

from __future__ import annotations

import os
import random
import signal
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from tests.e2e.faults import Fault, Played, Script, assert_same, event_of, kill_after, kill_at, kill_sandbox
from tests.e2e.support import finishes, of_type, plans, sandbox_processes, shell, writes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.conftest import Stack
    from tests.e2e.support import Person

    type Plays = Callable[[str], Played]

FILES = {
    "check.sh": "! test -e steps\n",
    "a.txt": "a\n",
    ".gitignore": "built\n",
    ".sandpiper.yml": "checks: ['sh check.sh']\n",
    "prd.json": '{"userStories": [{"id": "US-1", "title": "The steps", "passes": false}]}\n',
}
# Each step appends, so that one which is done twice, or on another tree than it had, shows in the end.
REPLIES = (
    plans("sh check.sh"),
    shell("echo one >> steps; sleep 0.2"),
    shell("echo two >> steps; touch built"),
    writes("b.txt", "b\n"),
    shell("mkdir d; mv steps d; echo three >> d/steps"),
    finishes("After all."),
)
TOLD_TO_GO = (kill_at("tool_started", nth=2, number=signal.SIGTERM),)
# Two kills in one life: the third loss would be the end of the run.
AT_EVENTS: dict[str, tuple[Fault, Fault]] = {
    "beginning": (kill_at("run_started"), kill_at("repo_clone_started", attempt=2)),
    "reading": (kill_at("repo_clone_completed"), kill_at("repo_context_collected", attempt=2)),
    "planning": (kill_at("agent_turn_started"), kill_at("planning_completed", attempt=2)),
    "commands": (kill_at("tool_started", nth=2), kill_at("tool_completed", nth=2, attempt=2)),
    "edits": (kill_at("agent_turn_started", nth=4), kill_at("file_changed", attempt=2)),
    "finishing": (kill_at("agent_turn_completed", nth=6), kill_at("agent_finished", attempt=2)),
    "proving": (kill_at("gate_check_started"), kill_at("gate_completed", attempt=2)),
    "publishing": (kill_at("commit_created"), kill_at("commit_pushed")),
}
AT_RANDOM = ("random-1", "random-2", "random-3")
SEED = int(os.environ.get("SANDPIPER_FAULT_SEED") or random.randrange(10**6))  # noqa: S311 - chance, no secret
SIDE_BY_SIDE = 6


@pytest.fixture(scope="module")
def script(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Script:
    for service in ("dynamodb", "s3", "ecs", "stepfunctions"):
        stack.aws(service)  # made by one thread, used by many
    return Script(stack, tmp_path_factory.mktemp("kills"), FILES, REPLIES, words="Do US-1 by the script")


@pytest.fixture(scope="module")
def calm(script: Script) -> Played:
    played = script.run()
    assert played.outcome == ("completed", "After all.", "passed")
    assert (played.requests, played.commits, played.pushes, played.stories) == (len(REPLIES), 1, 1, 1)
    assert {"d/steps", "prd.json"} < played.tree.keys()
    return played


@pytest.fixture(scope="module")
def played(stack: Stack, script: Script, calm: Played) -> Iterator[Plays]:
    plays = {**AT_EVENTS, **at_random(calm), "told to go": TOLD_TO_GO, "two at once": two_at_once(stack)}
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        started: dict[str, Future[Played]] = {name: pool.submit(script.run, *plays[name]) for name in plays}
        yield lambda name: started[name].result()


def at_random(calm: Played) -> dict[str, tuple[Fault, Fault]]:
    """At any time that an undisturbed run takes in its sandbox."""
    print(f"SANDPIPER_FAULT_SEED={SEED}")  # noqa: T201 - shown with a failure
    chance, span = random.Random(SEED), seconds_of(calm)  # noqa: S311
    return {
        name: (kill_after(chance.uniform(0, span), attempt=1), kill_after(chance.uniform(0, span), attempt=2))
        for name in AT_RANDOM
    }


def seconds_of(calm: Played) -> float:
    times = {event["type"]: datetime.fromisoformat(event["ts"]) for event in calm.events}
    return (times["run_completed"] - times["run_started"]).total_seconds()


@pytest.mark.parametrize("name", AT_EVENTS)
def test_a_run_whose_sandboxes_are_killed_at_events_ends_like_one_that_was_left_alone(
    played: Plays, calm: Played, name: str
) -> None:
    killed = played(name)
    assert_same(killed, calm, kills=2)
    assert killed.losses == (killed.run["attempt"] - 1)
    # one that is killed when little is left to do may have handed in its result by then
    assert killed.losses == 2 or (killed.losses == 1 and name in {"proving", "publishing"})


@pytest.mark.parametrize("name", AT_RANDOM)
def test_a_run_whose_sandboxes_are_killed_at_any_time_ends_like_one_that_was_left_alone(
    played: Plays, calm: Played, name: str
) -> None:
    killed = played(name)
    assert_same(killed, calm, kills=killed.losses)


def test_a_run_that_is_killed_twice_tells_what_was_kept(played: Plays) -> None:
    first, second = of_type(played("edits").events, "run_recovered")
    assert 2 <= first["kept_turns"] <= second["kept_turns"] <= len(REPLIES)


def test_a_sandbox_that_is_told_to_go_hands_over(played: Plays, calm: Played) -> None:
    told = played("told to go")
    assert_same(told, calm, kills=1)
    assert of_type(told.events, "run_recovered")[0]["error"] == "SandboxTerminated"


def test_of_two_sandboxes_of_one_run_the_older_one_does_nothing_any_more(played: Plays, calm: Played) -> None:
    assert_same(played("two at once"), calm, kills=2)


def two_at_once(stack: Stack) -> tuple[Fault, Fault]:
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
        event_of(person, run_id, "run_started", nth=2)
        for pid in asleep:
            os.kill(pid, signal.SIGCONT)
        event_of(person, run_id, "run_completed")
        kill_sandbox(run_id, attempt=1)

    return freeze, wake


def token_of(stack: Stack, run_id: str) -> str:
    """Of the first attempt."""
    ecs, cluster = stack.aws("ecs"), stack.outputs["ClusterArn"]
    tasks = ecs.list_tasks(cluster=cluster, startedBy=run_id)["taskArns"]
    (task,) = ecs.describe_tasks(cluster=cluster, tasks=tasks)["tasks"]
    environment = task["overrides"]["containerOverrides"][0]["environment"]
    return str(next(entry["value"] for entry in environment if entry["name"] == "TASK_TOKEN"))
