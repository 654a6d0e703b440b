"""The steps of a run, wired to AWS. Both the workflow and reconcile end runs, by the same rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper.adapters.aws import client
from sandpiper.adapters.blobs import S3Blobs
from sandpiper.adapters.clock import SystemClock
from sandpiper.adapters.github.announcer import LambdaAnnouncer
from sandpiper.adapters.run_secrets import KmsRunSecrets
from sandpiper.adapters.runs import DynamoRuns
from sandpiper.adapters.sandboxes import EcsSandboxes
from sandpiper.adapters.slots import DynamoSlots
from sandpiper.adapters.workflow import StepFunctionsWorkflow
from sandpiper.logic.line import Line
from sandpiper.logic.workflow_steps import Steps

if TYPE_CHECKING:
    from shared.step_settings import StepSettings


def steps_of(settings: StepSettings) -> Steps:
    dynamodb, clock = client("dynamodb"), SystemClock()
    blobs = S3Blobs(client("s3"), bucket=settings.artifacts_bucket)
    workflow = StepFunctionsWorkflow(client("stepfunctions"), state_machine_arn=settings.state_machine_arn)
    announcer = LambdaAnnouncer(client("lambda"), function=settings.github_function)
    runs, events = settings.runs_table, settings.events_table
    return Steps(
        runs=DynamoRuns(dynamodb, runs_table=runs, events_table=events, blobs=blobs, clock=clock),
        line=Line(DynamoSlots(dynamodb, runs_table=runs), workflow, settings.concurrency),
        blobs=blobs,
        secrets=KmsRunSecrets(
            dynamodb, client("kms"), runs_table=runs, key_id=settings.run_secrets_key_id, clock=clock
        ),
        workflow=workflow,
        sandboxes=EcsSandboxes(client("ecs"), cluster_arn=settings.cluster_arn),
        clock=clock,
        use_spot=settings.use_spot,
        tell_github=announcer.tell,
    )
