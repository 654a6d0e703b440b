"""The real definition on a real embedded AWS, with a stub for the workflow function and a hand on the task tokens."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
import uuid
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3

from sandpiper_local.template.state_machine import with_fixed_timeouts
from tests.infra.sources import DEFINITION, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mypy_boto3_ecs import ECSClient
    from mypy_boto3_stepfunctions import SFNClient

MINISTACK = ROOT / ".tools/ministack/bin/ministack"
PATIENCE_SECONDS = 30
ROLE = "arn:aws:iam::000000000000:role/anything"

# Answers each action with the next line of its script, the last one again and again; notes what it was asked.
STUB = """
import json, os, pathlib

def handler(event, context):
    run = pathlib.Path(os.environ["RUNS"], event["run_id"])
    with (run / "calls").open("a") as calls:
        calls.write(json.dumps(event) + "\\n")
    asked = [json.loads(line)["action"] for line in (run / "calls").read_text().splitlines()]
    answers = json.loads((run / "answers").read_text()).get(event["action"], [{}])
    answer = answers[min(asked.count(event["action"]), len(answers)) - 1]
    if "raise" in answer:
        raise RuntimeError(answer["raise"])
    print("answered", event["action"])
    return answer
"""


@dataclass(frozen=True)
class Play:
    """One execution: what the function was asked, and answers to whoever waits on a token."""

    machine: Machine
    run_id: str
    execution_arn: str
    answered: set[str] = field(default_factory=set)

    def calls(self, action: str | None = None) -> list[dict[str, Any]]:
        log = self.machine.runs / self.run_id / "calls"
        calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [call for call in calls if action in {None, call["action"]}]

    def actions(self) -> list[str]:
        return [call["action"] for call in self.calls()]

    def answer(self, action: str, output: dict[str, Any]) -> None:
        token = self._token(lambda: [call["token"] for call in self.calls(action)])
        self.machine.stepfunctions.send_task_success(taskToken=token, output=json.dumps(output))

    def sandbox_ends(self, outcome: str, result_key: str) -> dict[str, Any]:
        task = self.sandbox()
        output = json.dumps({"outcome": outcome, "result_key": result_key})
        self.machine.stepfunctions.send_task_success(taskToken=task["environment"]["TASK_TOKEN"], output=output)
        return task

    def sandbox_fails(self, error: str, cause: str) -> None:
        token = self.sandbox()["environment"]["TASK_TOKEN"]
        self.machine.stepfunctions.send_task_failure(taskToken=token, error=error, cause=cause)

    def sandbox(self) -> dict[str, Any]:
        """The container that is waited on, with the environment that it was started with."""
        token = self._token(lambda: [task["environment"]["TASK_TOKEN"] for task in self._tasks()])
        return next(task for task in self._tasks() if task["environment"]["TASK_TOKEN"] == token)

    def end(self) -> dict[str, Any]:
        def ended() -> dict[str, Any] | None:
            found = self.machine.stepfunctions.describe_execution(executionArn=self.execution_arn)
            return dict(found) if found["status"] != "RUNNING" else None

        return _wait_for(ended, f"the end of {self.run_id} after {self.actions()}")

    def _token(self, tokens: Callable[[], list[str]]) -> str:
        def fresh() -> str | None:
            return next((token for token in tokens() if token not in self.answered), None)

        token = _wait_for(fresh, f"a token of {self.run_id} after {self.actions()}")
        self.answered.add(token)
        return token

    def _tasks(self) -> list[dict[str, Any]]:
        ecs = self.machine.ecs
        arns = ecs.list_tasks(cluster=self.machine.cluster_arn, startedBy=self.run_id)["taskArns"]
        tasks = (
            ecs.describe_tasks(cluster=self.machine.cluster_arn, tasks=arns, include=["TAGS"])["tasks"] if arns else []
        )
        return [{**task, "environment": _environment(dict(task))} for task in tasks]


@dataclass(frozen=True)
class Machine:
    stepfunctions: SFNClient
    ecs: ECSClient
    runs: Path
    cluster_arn: str
    machine_arn: str

    def start(self, **answers: list[dict[str, Any]]) -> Play:
        run_id = f"run-{uuid.uuid4().hex[:26]}"
        prepared = {"cancelled": False, "attempt": 1, "token_timeout_seconds": 630, "capacity": "FARGATE"}
        (self.runs / run_id).mkdir()
        (self.runs / run_id / "answers").write_text(json.dumps({"prepare": [prepared]} | answers))
        execution = self.stepfunctions.start_execution(
            stateMachineArn=self.machine_arn, name=run_id, input=json.dumps({"run_id": run_id})
        )
        return Play(self, run_id, execution["executionArn"])


@contextlib.contextmanager
def running_machine(scratch: Path) -> Iterator[Machine]:
    port = _free_port()
    runs = scratch / "runs"
    runs.mkdir()
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(scratch), "TMPDIR": str(scratch), "RUNS": str(runs),
        "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "IOT_MTLS_ENABLED": "0", "SFTP_ENABLED": "0",
        "SFN_WAIT_SCALE": "0.02",  # the seconds between two tries are the definition's business, not that of its ways
    }  # fmt: skip
    with (scratch / "ministack.log").open("w") as log:
        process = subprocess.Popen(
            [MINISTACK], env=environment, cwd=scratch, stdout=log, stderr=log, start_new_session=True
        )
        try:
            yield _deploy(f"http://127.0.0.1:{port}", runs)
        finally:
            # The group: its Lambda workers are children of its own.
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=PATIENCE_SECONDS)


def _deploy(endpoint: str, runs: Path) -> Machine:
    _wait_for(lambda: _is_up(endpoint) or None, "ministack")
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="eu-west-1")
    ecs = session.client("ecs", endpoint_url=endpoint)
    stepfunctions = session.client("stepfunctions", endpoint_url=endpoint)
    function = session.client("lambda", endpoint_url=endpoint).create_function(
        FunctionName="workflow", Runtime="python3.13", Handler="stub.handler", Role=ROLE,
        Code={"ZipFile": _zipped("stub.py", STUB)}, Environment={"Variables": {"RUNS": str(runs)}},
    )  # fmt: skip
    cluster_arn = ecs.create_cluster(clusterName="cluster")["cluster"]["clusterArn"]
    ecs.register_task_definition(family="sandbox", containerDefinitions=[{"name": "sandbox", "image": "none"}])
    definition = _definition(WorkflowFunctionArn=function["FunctionArn"], ClusterArn=cluster_arn)
    created = stepfunctions.create_state_machine(name="run", definition=definition, roleArn=ROLE)
    return Machine(stepfunctions, ecs, runs, cluster_arn, created["stateMachineArn"])


def _definition(**substitutions: str) -> str:
    values = {"Partition": "aws", "TaskFamily": "sandbox", "SubnetA": "a", "SubnetB": "b", "SecurityGroup": "sg"}
    text = with_fixed_timeouts(DEFINITION.read_bytes()).decode()
    for name, value in (values | substitutions).items():
        text = text.replace(f"${{{name}}}", value)
    return text


def _environment(task: dict[str, Any]) -> dict[str, str]:
    (container,) = task["overrides"]["containerOverrides"]
    return {variable["name"]: variable["value"] for variable in container["environment"]}


def _zipped(name: str, content: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_up(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(f"{endpoint}/health", timeout=1) as response:  # noqa: S310 - our own process
            return bool(response.status == 200)
    except OSError:
        return False


def _wait_for[T](look: Callable[[], T | None], what: str) -> T:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if (found := look()) is not None:
            return found
        time.sleep(0.05)
    raise TimeoutError(what)
