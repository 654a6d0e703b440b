"""The state machine's definition, as text and as data."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from sandpiper import limits
from tests.infra.sources import DEFINITION, properties, states

TASKS = {name: state for name, state in states().items() if state["Type"] == "Task"}
LAMBDA_TASKS = {name: task for name, task in TASKS.items() if "lambda" in task["Resource"]}
TRANSIENT = {
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
}


def test_it_is_written_in_jsonata() -> None:
    assert json.loads(DEFINITION.read_text())["QueryLanguage"] == "JSONata"


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_a_timeout(name: str) -> None:
    assert "TimeoutSeconds" in TASKS[name]


@pytest.mark.parametrize("name", TASKS)
def test_every_task_catches_everything_and_ends_in_finalize(name: str) -> None:
    (catch,) = TASKS[name]["Catch"]
    assert catch["ErrorEquals"] == ["States.ALL"]
    follows = {"Launch": "Recover", "Finalize": "NotFinalized"}
    assert catch["Next"] == follows.get(name, "Finalize")


@pytest.mark.parametrize("name", LAMBDA_TASKS)
def test_every_call_of_a_function_is_repeated_on_a_transient_error(name: str) -> None:
    assert set(LAMBDA_TASKS[name]["Retry"][0]["ErrorEquals"]) == TRANSIENT


@pytest.mark.parametrize("name", TASKS)
def test_what_a_catch_passes_on_is_bounded(name: str) -> None:
    output = TASKS[name]["Catch"][0]["Output"]
    bounded_before = name == "Recover"
    assert set(output) == {"error", "cause"}
    assert bounded_before or all("$substring(" in expression for expression in output.values())


def test_every_state_can_be_reached_and_leads_somewhere_that_exists() -> None:
    reached, ahead = set(), {"AcquireSlot"}
    while ahead:
        name = ahead.pop()
        reached.add(name)
        ahead |= _followers(states()[name]) - reached
    assert reached == set(states())


def test_a_sandbox_is_missed_after_the_heartbeat_that_the_sandbox_knows_of() -> None:
    assert states()["Launch"]["HeartbeatSeconds"] == limits.HEARTBEAT_SECONDS
    assert limits.HEARTBEAT_EVERY_SECONDS * 3 <= limits.HEARTBEAT_SECONDS


def test_a_launch_has_the_time_that_prepare_gives_it() -> None:
    assert states()["Launch"]["TimeoutSeconds"] == "{% $states.input.token_timeout_seconds %}"


def test_an_approval_is_waited_for_a_week_and_everything_else_a_month() -> None:
    week, month = 7 * 24 * 3600, 30 * 24 * 3600
    expected = f"{{% $states.input.reason = 'awaiting_approval' ? {week} : {month} %}}"
    assert states()["Suspend"]["TimeoutSeconds"] == expected


def test_a_launch_with_the_longest_token_stays_within_what_ecs_takes_as_overrides() -> None:
    overrides = json.dumps(states()["Launch"]["Arguments"]["Overrides"])
    token = 2_048
    assert len(overrides) + token < limits.ECS_OVERRIDES_CHARS


def test_no_one_can_open_a_shell_in_a_sandbox() -> None:
    assert states()["Launch"]["Arguments"]["EnableExecuteCommand"] is False


def test_it_holds_no_literal_arn_account_or_region() -> None:
    arns = re.findall(r"arn:[^\"]*", DEFINITION.read_text())
    services = {"lambda:invoke", "lambda:invoke.waitForTaskToken", "aws-sdk:ecs:runTask.waitForTaskToken"}
    assert set(arns) == {f"arn:${{Partition}}:states:::{service}" for service in services}
    assert not re.search(r"\d{12}|[a-z]{2}-[a-z]+-\d", DEFINITION.read_text())


def test_every_substitution_is_supplied_and_none_is_unused() -> None:
    used = set(re.findall(r"\$\{(\w+)\}", DEFINITION.read_text()))
    assert used == set(properties("RunStateMachine")["DefinitionSubstitutions"])


def _followers(state: dict[str, Any]) -> set[str]:
    branches = [state, *state.get("Catch", []), *state.get("Choices", [])]
    named = {branch["Next"] for branch in branches if "Next" in branch}
    return named | ({state["Default"]} if "Default" in state else set())
