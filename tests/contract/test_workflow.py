from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from sandpiper.adapters.workflow import StepFunctionsWorkflow
from sandpiper.errors import Fenced, NotFound
from sandpiper.testing.fakes import FakeWorkflow

if TYPE_CHECKING:
    from sandpiper.ports import Workflow
    from tests.contract.worlds import Aws


class World(Protocol):
    """The port, and the other side of it: an execution that waits on a token."""

    @property
    def workflow(self) -> Workflow: ...

    def token(self, run_id: str) -> str: ...


@dataclass(frozen=True)
class FakeWorld:
    workflow: FakeWorkflow

    def token(self, run_id: str) -> str:
        self.workflow.wait_on(f"token of {run_id}")
        return f"token of {run_id}"


@dataclass(frozen=True)
class RealWorld:
    workflow: StepFunctionsWorkflow
    sqs: Any
    queue_url: str

    def token(self, run_id: str) -> str:
        """The machine puts its token in a queue; other tests' messages may be there too."""
        for _ in range(20):
            answer = self.sqs.receive_message(QueueUrl=self.queue_url, WaitTimeSeconds=1, MaxNumberOfMessages=10)
            for message in answer.get("Messages", ()):
                body = json.loads(message["Body"])
                if body["run_id"] == run_id:
                    return str(body["token"])
        raise TimeoutError


@pytest.fixture(scope="session")
def real_world(aws: Aws) -> RealWorld:
    sqs, stepfunctions = aws.client("sqs"), aws.client("stepfunctions")
    queue_url = sqs.create_queue(QueueName=f"tokens-{uuid.uuid4()}")["QueueUrl"]
    wait = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Parameters": {
            "QueueUrl": queue_url,
            "MessageBody": {"run_id.$": "$.run_id", "token.$": "$$.Task.Token"},
        },
        "End": True,
    }
    machine = stepfunctions.create_state_machine(
        name=f"run-{uuid.uuid4()}",
        definition=json.dumps({"StartAt": "Wait", "States": {"Wait": wait}}),
        roleArn="arn:aws:iam::000000000000:role/states",
    )
    workflow = StepFunctionsWorkflow(stepfunctions, state_machine_arn=machine["stateMachineArn"])
    return RealWorld(workflow, sqs, queue_url)


@pytest.fixture(params=["fake", "real"])
def world(request: pytest.FixtureRequest) -> World:
    if request.param == "fake":
        return FakeWorld(FakeWorkflow())
    real: RealWorld = request.getfixturevalue("real_world")
    return real


@pytest.fixture
def token(world: World, run_id: str) -> str:
    world.workflow.start(run_id, {"run_id": run_id})
    return world.token(run_id)


def test_a_started_run_is_running_and_one_that_was_not_started_is_not(world: World, run_id: str) -> None:
    assert not world.workflow.is_running(run_id)
    world.workflow.start(run_id, {"run_id": run_id})
    assert world.workflow.is_running(run_id)
    world.workflow.stop(run_id, "test")


def test_starting_again_is_no_second_start(world: World, run_id: str) -> None:
    world.workflow.start(run_id, {"run_id": run_id})
    world.workflow.start(run_id, {"run_id": run_id})
    world.workflow.start(run_id, {"run_id": run_id, "other": True})
    world.workflow.stop(run_id, "test")
    world.workflow.start(run_id, {"run_id": run_id})
    assert not world.workflow.is_running(run_id)


def test_an_answer_is_taken_once(world: World, token: str) -> None:
    world.workflow.heartbeat(token)
    world.workflow.succeed(token, {"cancelled": False})


def test_a_failure_is_told_however_long_its_cause(world: World, token: str) -> None:
    world.workflow.fail(token, "SandboxLost" * 100, "because " * 10_000)


def test_on_an_unknown_token_everything_is_fenced(world: World) -> None:
    with pytest.raises(Fenced):
        world.workflow.succeed("nobody waits on this", {})
    with pytest.raises(Fenced):
        world.workflow.fail("nobody waits on this", "Error", "cause")
    with pytest.raises(Fenced):
        world.workflow.heartbeat("nobody waits on this")


def test_stopping_ends_a_run_and_may_be_repeated(world: World, run_id: str) -> None:
    world.workflow.start(run_id, {"run_id": run_id})
    world.workflow.stop(run_id, "cancelled " * 10_000)
    world.workflow.stop(run_id, "again")
    assert not world.workflow.is_running(run_id)


def test_stopping_what_was_never_started_is_not_found(world: World, run_id: str) -> None:
    with pytest.raises(NotFound):
        world.workflow.stop(run_id, "test")


def test_executions_under_way_are_listed_with_their_start_and_ended_ones_are_not(world: World, run_id: str) -> None:
    ended = f"{run_id[:-2]}zz"
    for name in (run_id, ended):
        world.workflow.start(name, {"run_id": name})
    world.workflow.stop(ended, "enough")
    listed = world.workflow.running()
    assert listed[run_id].tzinfo is not None
    assert ended not in listed
