"""State machine → workflow: one action per step."""

from __future__ import annotations

import functools
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from sandpiper.logic.outcomes import Ending
from shared.steps import steps_of
from workflow.settings import Settings

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from sandpiper.logic.workflow_steps import Steps
    from sandpiper.models.run import Status

_METRIC_OF_END: dict[Status, str] = {
    "completed": "RunsCompleted",
    "failed": "RunsFailed",
    "cancelled": "RunsCancelled",
    "timed_out": "RunsTimedOut",
}

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:
    logger.append_keys(run_id=event["run_id"], action=event["action"])
    answer = _act(event, event["run_id"])
    logger.info("done", answer=answer)
    return answer


def _act(event: dict[str, Any], run_id: str) -> dict[str, Any]:
    match event["action"]:
        case "acquire_slot":
            steps().acquire_slot(run_id, event["token"])
            return {}
        case "prepare":
            return asdict(steps().prepare(run_id))
        case "suspend":
            steps().suspend(run_id, event["token"], event["result_key"])
            return {}
        case "recover":
            return {"again": steps().recover(run_id, event["error"], event["cause"])}
        case "finalize":
            return _finalize(event, run_id)
    message = f"unknown action {event['action']}"
    raise ValueError(message)


def _finalize(event: dict[str, Any], run_id: str) -> dict[str, Any]:
    ending = Ending(
        result_key=event.get("result_key"),
        error=event.get("error"),
        cause=event.get("cause"),
        cancelled=event.get("cancelled") is True,
    )
    finalized = steps().finalize(run_id, ending)
    if finalized.just_now:
        with single_metric(name=_METRIC_OF_END[finalized.run.status], unit=MetricUnit.Count, value=1):
            pass
    return {"status": finalized.run.status}


@functools.cache
def steps() -> Steps:
    return steps_of(Settings.read(os.environ))
