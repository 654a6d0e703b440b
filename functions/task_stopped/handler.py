"""EventBridge (ECS Task State Change, STOPPED) → task_stopped. The event says all: no settings."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from sandpiper.adapters.aws import client
from sandpiper.adapters.workflow import StepFunctionsWorkflow
from sandpiper.logic.sandbox_lost import task_stopped

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from sandpiper.ports import Workflow

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, int]:
    detail = event["detail"]
    logger.append_keys(run_id=detail.get("startedBy"))
    told = task_stopped(detail, workflow())
    logger.info("sandbox stopped", task=detail.get("taskArn"), told=told)
    return {"told": told}


@functools.cache
def workflow() -> Workflow:
    return StepFunctionsWorkflow(client("stepfunctions"), state_machine_arn="")
