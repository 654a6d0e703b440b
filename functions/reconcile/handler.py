"""EventBridge (an execution ended badly; every quarter of an hour) → reconcile."""

from __future__ import annotations

import functools
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from reconcile.settings import Settings
from sandpiper.logic.reconcile import Reconciler
from shared.steps import steps_of

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from sandpiper.logic.reconcile import Mended

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, list[str]]:
    mended = _mend(event)
    if mended.runs:
        with single_metric(name="RunsMended", unit=MetricUnit.Count, value=len(mended.runs)):
            logger.warning("runs ended that nothing else ended", runs=mended.runs)
    if mended.leftovers:
        with single_metric(name="LeftoversMended", unit=MetricUnit.Count, value=mended.leftovers):
            logger.warning("something was left that nothing needs", **asdict(mended))
    logger.info("reconciled", mended=len(mended.runs), leftovers=mended.leftovers)
    return asdict(mended)


def _mend(event: dict[str, Any]) -> Mended:
    if event.get("source") != "aws.states":
        return reconciler().sweep()
    detail = event["detail"]
    return reconciler().execution_ended(detail["name"], detail["status"], detail.get("cause") or "")


@functools.cache
def reconciler() -> Reconciler:
    return Reconciler(steps_of(Settings.read(os.environ)))
