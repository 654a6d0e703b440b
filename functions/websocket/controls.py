"""The rules of control, wired to AWS as the api function does it."""

from __future__ import annotations

import functools
import os

from sandpiper.adapters.aws import client
from sandpiper.adapters.blobs import S3Blobs
from sandpiper.adapters.clock import SystemClock
from sandpiper.adapters.quotas import DynamoQuotas
from sandpiper.adapters.runs import DynamoRuns
from sandpiper.adapters.workflow import StepFunctionsWorkflow
from sandpiper.logic.control import Controls
from sandpiper.logic.quotas import QuotaRules
from sandpiper.models.quota import Quota
from websocket.settings import Settings


@functools.cache
def controls() -> Controls:
    settings, clock = Settings.read(os.environ), SystemClock()
    runs = DynamoRuns(
        client("dynamodb"),
        runs_table=settings.runs_table,
        events_table=settings.events_table,
        blobs=S3Blobs(client("s3"), bucket=settings.artifacts_bucket),
        clock=clock,
    )
    books = DynamoQuotas(client("dynamodb"), runs_table=settings.runs_table)
    # It answers tokens and starts nothing.
    workflow = StepFunctionsWorkflow(client("stepfunctions"), state_machine_arn="")
    return Controls(runs, workflow, clock, QuotaRules(books, clock, Quota(monthly_usd=settings.monthly_usd)))
