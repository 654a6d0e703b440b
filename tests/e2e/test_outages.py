"""What a sandbox needs and is away for a while: the run ends like one that was left alone. All go on side by side."""

from __future__ import annotations

import os
import signal
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper_local.scripted_model.conversation import last_tool_results
from tests.e2e.failing_proxy import AWS_TROUBLES, MODEL_IS_DOWN, FailingProxy, rerouted
from tests.e2e.faults import Fault, Played, Script, assert_same, event_of
from tests.e2e.support import (
    Person,
    finishes,
    new_task,
    of_type,
    plans,
    processes_with,
    requests_for,
    shell,
    wait_for,
    writes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.conftest import Stack

    type Plays = Callable[[str], Played]

FILES = {"a.txt": "a\n", ".sandpiper.yml": "checks: ['test -e a.txt']\n"}
# event → for how many seconds S3 and DynamoDB fail from then on
AWS_AWAY = {
    "at the beginning": {"run_dispatched": 3.0},
    "in the middle": {"repo_clone_started": 1.0, "tool_started": 3.0},
    "at the end": {"gate_check_started": 1.0, "commit_created": 3.0},
}
MODEL_SECONDS = 2.0


def replies(**second: Any) -> tuple[dict[str, Any], ...]:
    """`second` is of the second reply."""
    return (
        plans(),
        shell("echo one >> steps; sleep 0.3", **second),
        shell("echo two >> steps"),
        writes("b.txt", "b\n"),
        finishes("After all."),
    )


# what the model does → (what becomes of its second reply, how many more requests that takes)
MODEL_FAILS: dict[str, tuple[dict[str, Any], int]] = {
    "overloaded": ({"status": 529, "retry_after": 0, "times": 3}, 3),
    "cutting streams": ({"cut_after_bytes": 300, "times": 2}, 2),
}


@pytest.fixture(scope="module")
def played(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plays]:
    for service in ("dynamodb", "s3", "stepfunctions"):
        stack.aws(service)  # made by one thread, used by many
    root = tmp_path_factory.mktemp("outages")
    with ExitStack() as opened:
        aws = opened.enter_context(FailingProxy(stack.info["aws_endpoint"], troubles=AWS_TROUBLES))
        model = opened.enter_context(FailingProxy(stack.model.url, troubles=MODEL_IS_DOWN))
        opened.enter_context(rerouted(stack, AWS_ENDPOINT_URL=aws.url, ANTHROPIC_BASE_URL=model.url))
        script = Script(stack, root / "plain", FILES, replies())
        faults: dict[str, tuple[Fault, ...]] = {name: away(aws, AWS_AWAY[name]) for name in AWS_AWAY}
        faults |= {"calm": (), "down": (down(model),)}
        pool = opened.enter_context(ThreadPoolExecutor(len(faults) + len(MODEL_FAILS)))
        started = {name: pool.submit(script.run, *faults[name]) for name in faults}
        for name, (fault, _) in MODEL_FAILS.items():
            started[name] = pool.submit(Script(stack, root / name, FILES, replies(fault=fault)).run)
        yield lambda name: started[name].result()


def away(aws: FailingProxy, moments: dict[str, float]) -> tuple[Fault, ...]:
    def at(type_: str, seconds: float) -> Fault:
        def fault(person: Person, run_id: str) -> None:
            event_of(person, run_id, type_)
            aws.fail_for(run_id, seconds)

        return fault

    def both_failed(_person: Person, run_id: str) -> None:
        wait_for(lambda: (aws.failed[run_id, "dynamodb"] and aws.failed[run_id, "s3"]) or None)

    return (*(at(type_, seconds) for type_, seconds in moments.items()), both_failed)


def down(model: FailingProxy) -> Fault:
    def fault(person: Person, run_id: str) -> None:
        event_of(person, run_id, "planning_completed")
        model.fail_for(person.run(run_id)["task"], MODEL_SECONDS)

    return fault


@pytest.mark.parametrize("name", AWS_AWAY)
def test_a_run_outlives_throttling_and_failures_of_the_tables_and_the_store(played: Plays, name: str) -> None:
    disturbed = played(name)
    assert_same(disturbed, played("calm"), kills=disturbed.losses)


def test_a_run_outlives_a_model_that_can_not_be_reached_for_a_while(played: Plays) -> None:
    assert_same(played("down"), played("calm"), kills=0)
    assert of_type(played("down").events, "agent_turn_failed")


@pytest.mark.parametrize("name", MODEL_FAILS)
def test_a_run_outlives_a_model_that_fails_again_and_again(played: Plays, name: str) -> None:
    failures = MODEL_FAILS[name][1]
    assert_same(played(name), played("calm"), kills=failures)
    assert len(of_type(played(name).events, "agent_turn_failed")) == failures


def test_a_command_that_somebody_kills_is_told_to_the_model_and_the_run_goes_on(stack: Stack) -> None:
    mark = uuid.uuid4().hex
    task = new_task(stack, plans(), shell(f"exec -a {mark} sleep 600"), finishes("After all."))
    with Person(stack) as person:
        run_id = person.start({"task": task})
        for pid in wait_for(lambda: [pid for pid in processes_with(mark) if is_command(pid, mark)] or None):
            os.kill(pid, signal.SIGKILL)
        run = person.end_of(run_id)
    assert (run["status"], run["attempt"], run["result"]["summary"]) == ("completed", 1, "After all.")
    (result,) = last_tool_results(requests_for(stack, task)[-1]["messages"])
    assert "killed by SIGKILL" in result.text


def is_command(pid: int, mark: str) -> bool:
    """And not the shell that is about to become it."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(mark.encode())
    except FileNotFoundError:
        return False
