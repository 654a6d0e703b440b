"""The rules of the api function, wired to AWS."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from api.health import health_of
from api.settings import Settings
from api.world import World
from sandpiper.adapters.aws import client
from sandpiper.adapters.blobs import S3Blobs
from sandpiper.adapters.clock import SystemClock
from sandpiper.adapters.connections import DynamoConnections
from sandpiper.adapters.quotas import DynamoQuotas
from sandpiper.adapters.run_secrets import KmsRunSecrets
from sandpiper.adapters.runs import DynamoRuns
from sandpiper.adapters.slots import DynamoSlots
from sandpiper.adapters.workflow import StepFunctionsWorkflow
from sandpiper.logic.control import Controls
from sandpiper.logic.line import Line
from sandpiper.logic.quotas import QuotaRules
from sandpiper.logic.repos import RepoRules
from sandpiper.logic.start_run import Starter

if TYPE_CHECKING:
    from api.idempotency import Idempotency


def wired() -> World:
    settings, clock = Settings.read(os.environ), SystemClock()
    dynamodb, s3 = client("dynamodb"), client("s3")
    blobs = S3Blobs(s3, bucket=settings.artifacts_bucket)
    runs = DynamoRuns(
        dynamodb, runs_table=settings.runs_table, events_table=settings.events_table, blobs=blobs, clock=clock
    )
    secrets = KmsRunSecrets(
        dynamodb, client("kms"), runs_table=settings.runs_table, key_id=settings.run_secrets_key_id, clock=clock
    )
    workflow = StepFunctionsWorkflow(client("stepfunctions"), state_machine_arn=settings.state_machine_arn)
    quotas = QuotaRules(DynamoQuotas(dynamodb, runs_table=settings.runs_table), clock, settings.quota)
    return World(
        runs=runs,
        starter=Starter(runs, secrets, workflow, clock, quotas),
        controls=Controls(runs, workflow, clock, quotas),
        blobs=blobs,
        connections=DynamoConnections(dynamodb, connections_table=settings.connections_table),
        idempotency=functools.partial(_idempotency, settings.idempotency_table),
        health=health_of(settings, dynamodb, s3, client("secretsmanager")),
        repo_rules=RepoRules(settings.github_url, settings.allowed_repo_urls),
        websocket_url=settings.websocket_url,
        version=settings.version,
        clock=clock,
        quotas=quotas,
        line=Line(runs, DynamoSlots(dynamodb, runs_table=settings.runs_table), workflow, quotas),
        github_api_url=settings.github_api_url,
    )


@functools.cache
def _idempotency(table: str) -> Idempotency:
    # Powertools' store imports all of boto3: only requests with an Idempotency-Key pay for it, and once.
    from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer  # noqa: PLC0415

    from api.idempotency import Idempotency  # noqa: PLC0415

    return Idempotency(DynamoDBPersistenceLayer(table_name=table, boto3_client=client("dynamodb")))
