"""Each way through the state machine, on the embedded AWS."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.infra.machine import Machine, running_machine

if TYPE_CHECKING:
    from collections.abc import Iterator

GO_ON = {"cancelled": False}
CANCEL = {"cancelled": True}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with running_machine(tmp_path_factory.mktemp("machine")) as running:
        yield running


def test_a_run_waits_for_its_slot_then_for_its_sandbox_and_is_finalized_with_the_result(machine: Machine) -> None:
    run = machine.start()
    run.answer("acquire_slot", GO_ON)
    run.sandbox_ends("finished", "runs/r/result.json")
    assert run.end()["status"] == "SUCCEEDED"
    assert run.actions() == ["acquire_slot", "prepare", "finalize"]
    assert run.calls("finalize") == [
        {"action": "finalize", "run_id": run.run_id, "result_key": "runs/r/result.json"},
    ]


def test_a_sandbox_is_told_its_run_its_attempt_its_token_and_nothing_else(machine: Machine) -> None:
    run = machine.start()
    run.answer("acquire_slot", GO_ON)
    task = run.sandbox_ends("finished", "key")
    run.end()
    assert task["environment"] == {
        "RUN_ID": run.run_id,
        "ATTEMPT": "1",
        "TASK_TOKEN": task["environment"]["TASK_TOKEN"],
    }
    assert task["startedBy"] == run.run_id
    assert task["capacityProviderName"] == "FARGATE"
    assert {"key": "run_id", "value": run.run_id} in task["tags"]


def test_a_suspended_run_gets_back_in_line_when_it_is_resumed(machine: Machine) -> None:
    run = machine.start()
    run.answer("acquire_slot", GO_ON)
    run.sandbox_ends("suspended", "first")
    run.answer("suspend", GO_ON)
    run.answer("acquire_slot", GO_ON)
    run.sandbox_ends("finished", "second")
    assert run.end()["status"] == "SUCCEEDED"
    assert run.actions() == ["acquire_slot", "prepare", "suspend", "acquire_slot", "prepare", "finalize"]
    assert run.calls("suspend")[0]["result_key"] == "first"
    assert run.calls("finalize")[0]["result_key"] == "second"


def test_a_run_cancelled_while_suspended_is_finalized_as_cancelled(machine: Machine) -> None:
    run = machine.start()
    run.answer("acquire_slot", GO_ON)
    run.sandbox_ends("suspended", "key")
    run.answer("suspend", CANCEL)
    assert run.end()["status"] == "SUCCEEDED"
    assert run.calls("finalize") == [{"action": "finalize", "run_id": run.run_id, "cancelled": True}]


def test_a_lost_sandbox_is_replaced_without_a_new_place_in_line(machine: Machine) -> None:
    run = machine.start(recover=[{"again": True}])
    run.answer("acquire_slot", GO_ON)
    run.sandbox_fails("SandboxLost", "the host went away")
    run.sandbox_ends("finished", "key")
    assert run.end()["status"] == "SUCCEEDED"
    assert run.actions() == ["acquire_slot", "prepare", "recover", "prepare", "finalize"]
    assert run.calls("recover") == [
        {"action": "recover", "run_id": run.run_id, "error": "SandboxLost", "cause": "the host went away"}
    ]
    assert run.calls("finalize")[0]["result_key"] == "key"


def test_a_run_that_is_not_tried_again_is_finalized_with_what_ended_its_sandbox(machine: Machine) -> None:
    run = machine.start(recover=[{"again": False}])
    run.answer("acquire_slot", GO_ON)
    run.sandbox_fails("SandboxLost", "gone")
    assert run.end()["status"] == "SUCCEEDED"
    assert run.calls("finalize") == [
        {"action": "finalize", "run_id": run.run_id, "error": "SandboxLost", "cause": "gone"}
    ]


def test_a_recovery_that_fails_leaves_the_reason_the_sandbox_gave(machine: Machine) -> None:
    run = machine.start(recover=[{"raise": "no table"}])
    run.answer("acquire_slot", GO_ON)
    run.sandbox_fails("SandboxLost", "gone")
    assert run.end()["status"] == "SUCCEEDED"
    assert run.calls("finalize")[0]["error"] == "SandboxLost"


def test_a_run_cancelled_in_line_never_gets_a_sandbox(machine: Machine) -> None:
    run = machine.start()
    run.answer("acquire_slot", CANCEL)
    assert run.end()["status"] == "SUCCEEDED"
    assert run.actions() == ["acquire_slot", "finalize"]
    assert run.calls("finalize") == [{"action": "finalize", "run_id": run.run_id, "cancelled": True}]


def test_a_run_cancelled_before_its_launch_never_gets_a_sandbox(machine: Machine) -> None:
    prepared = {"cancelled": True, "attempt": 0, "token_timeout_seconds": 630, "capacity": "FARGATE"}
    run = machine.start(prepare=[prepared])
    run.answer("acquire_slot", GO_ON)
    assert run.end()["status"] == "SUCCEEDED"
    assert run.calls("finalize") == [{"action": "finalize", "run_id": run.run_id, "cancelled": True}]


def test_a_preparation_that_fails_is_finalized_with_its_error(machine: Machine) -> None:
    run = machine.start(prepare=[{"raise": "no bucket"}])
    run.answer("acquire_slot", GO_ON)
    assert run.end()["status"] == "SUCCEEDED"
    (finalize,) = run.calls("finalize")
    assert finalize["error"]
    assert "no bucket" in finalize["cause"]


def test_a_long_cause_is_cut_before_it_goes_on(machine: Machine) -> None:
    run = machine.start(recover=[{"again": False}])
    run.answer("acquire_slot", GO_ON)
    run.sandbox_fails("SandboxLost", "x" * 20_000)
    assert run.end()["status"] == "SUCCEEDED"
    assert len(run.calls("recover")[0]["cause"]) == 2_000


def test_an_execution_whose_finalize_keeps_failing_fails_so_that_reconcile_hears_of_it(machine: Machine) -> None:
    run = machine.start(finalize=[{"raise": "no table"}])
    run.answer("acquire_slot", CANCEL)
    ended = run.end()
    assert ended["status"] == "FAILED"
    assert "no table" in json.dumps(ended["cause"])


def test_a_finalize_that_fails_once_is_repeated(machine: Machine) -> None:
    run = machine.start(finalize=[{"raise": "a conflict"}, {}])
    run.answer("acquire_slot", CANCEL)
    assert run.end()["status"] == "SUCCEEDED"
    assert len(run.calls("finalize")) == 2
