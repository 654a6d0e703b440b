"""The run state machine in Step Functions."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from sandpiper import limits
from sandpiper.adapters.aws import error_code
from sandpiper.errors import Fenced, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from mypy_boto3_stepfunctions import SFNClient

_TOKEN_IS_GONE = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"})


class StepFunctionsWorkflow:
    def __init__(self, stepfunctions: SFNClient, *, state_machine_arn: str) -> None:
        self._stepfunctions = stepfunctions
        self._state_machine_arn = state_machine_arn

    def start(self, run_id: str, payload: Mapping[str, Any]) -> None:
        try:
            self._stepfunctions.start_execution(
                stateMachineArn=self._state_machine_arn, name=run_id, input=json.dumps(dict(payload))
            )
        except ClientError as error:
            if error_code(error) != "ExecutionAlreadyExists":
                raise

    def succeed(self, token: str, output: Mapping[str, Any]) -> None:
        with _fenced_if_token_is_gone():
            self._stepfunctions.send_task_success(taskToken=token, output=json.dumps(dict(output)))

    def fail(self, token: str, error: str, cause: str) -> None:
        with _fenced_if_token_is_gone():
            self._stepfunctions.send_task_failure(
                taskToken=token, error=error[: limits.MAX_ERROR_CHARS], cause=cause[: limits.MAX_CAUSE_CHARS]
            )

    def heartbeat(self, token: str) -> None:
        with _fenced_if_token_is_gone():
            self._stepfunctions.send_task_heartbeat(taskToken=token)

    def stop(self, run_id: str, cause: str) -> None:
        try:
            self._stepfunctions.stop_execution(
                executionArn=self._execution_arn(run_id), cause=cause[: limits.MAX_CAUSE_CHARS]
            )
        except ClientError as error:
            if error_code(error) == "ExecutionDoesNotExist":
                raise NotFound(f"There is no execution of {run_id}.") from error
            raise

    def is_running(self, run_id: str) -> bool:
        try:
            execution = self._stepfunctions.describe_execution(executionArn=self._execution_arn(run_id))
        except ClientError as error:
            if error_code(error) == "ExecutionDoesNotExist":
                return False
            raise
        return execution["status"] == "RUNNING"

    def running(self) -> dict[str, datetime]:
        pages = self._stepfunctions.get_paginator("list_executions").paginate(
            stateMachineArn=self._state_machine_arn, statusFilter="RUNNING"
        )
        return {execution["name"]: execution["startDate"] for page in pages for execution in page["executions"]}

    def _execution_arn(self, run_id: str) -> str:
        return f"{self._state_machine_arn.replace(':stateMachine:', ':execution:')}:{run_id}"


@contextmanager
def _fenced_if_token_is_gone() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error_code(error) in _TOKEN_IS_GONE:
            raise Fenced("Nobody waits for this answer any more.") from error
        raise
