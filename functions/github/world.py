"""What the github function works with: the rules, wired to AWS and to GitHub."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from github.settings import Settings
from sandpiper.adapters.aws import client
from sandpiper.adapters.blobs import S3Blobs
from sandpiper.adapters.clock import SystemClock
from sandpiper.adapters.github.app import GitHubApp
from sandpiper.adapters.github.holds import DynamoHolds
from sandpiper.adapters.github.hub import RestHub
from sandpiper.adapters.github.reviews import Reviews
from sandpiper.adapters.github.topics import DynamoTopics
from sandpiper.adapters.head_watch import DynamoHeadWatch
from sandpiper.adapters.quotas import DynamoQuotas
from sandpiper.adapters.run_secrets import KmsRunSecrets
from sandpiper.adapters.runs import DynamoRuns
from sandpiper.adapters.workflow import StepFunctionsWorkflow
from sandpiper.logic.control import Controls
from sandpiper.logic.github.minting import Minter
from sandpiper.logic.github.orders import Orders
from sandpiper.logic.github.permissions import RESOLVE, TALK
from sandpiper.logic.github.resolving import Resolver
from sandpiper.logic.github.sweep import Sweep
from sandpiper.logic.github.telling import Teller
from sandpiper.logic.quotas import QuotaRules
from sandpiper.logic.repos import RepoRules
from sandpiper.logic.start_run import Starter
from shared.secret_values import SecretValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandpiper.logic.github.places import Place
    from sandpiper.models.github import GitHubOrigin


@dataclass(frozen=True)
class World:
    webhook_secret: Callable[[], str]
    minter: Minter
    resolver: Resolver
    orders: Orders
    teller: Teller
    sweep: Sweep


@functools.cache
def world() -> World:
    settings, clock, dynamodb = Settings.read(os.environ), SystemClock(), client("dynamodb")
    blobs = S3Blobs(client("s3"), bucket=settings.artifacts_bucket)
    table = settings.runs_table
    runs = DynamoRuns(dynamodb, runs_table=table, events_table=settings.events_table, blobs=blobs, clock=clock)
    key = settings.run_secrets_key_id
    secrets = KmsRunSecrets(dynamodb, client("kms"), runs_table=table, key_id=key, clock=clock)
    workflow = StepFunctionsWorkflow(client("stepfunctions"), state_machine_arn=settings.state_machine_arn)
    quotas = QuotaRules(DynamoQuotas(dynamodb, runs_table=table), clock, settings.quota)
    holds = DynamoHolds(dynamodb, table=settings.idempotency_table, clock=clock)
    app = _app(settings, clock)
    hub_of = functools.partial(_hub, app)
    topics = DynamoTopics(dynamodb, runs_table=table)
    teller = Teller(hub_of, runs, blobs, topics, holds, clock, settings.public_url or None)
    orders = Orders(
        hub_of=hub_of,
        runs=runs,
        starter=Starter(runs, secrets, workflow, clock, quotas),
        controls=Controls(runs, workflow, clock, quotas),
        topics=topics,
        watch=DynamoHeadWatch(dynamodb, runs_table=table, clock=clock),
        holds=holds,
        rules=RepoRules(settings.github_url),
        tell=teller.tell,
    )
    webhook_secret = SecretValue(settings.webhook_secret_arn)
    sweep = Sweep(app.deliveries, app.redeliver, clock)
    resolver = Resolver(runs, functools.partial(_remarks, app))
    return World(webhook_secret, Minter(runs, app.token), resolver, orders, teller, sweep)


def _app(settings: Settings, clock: SystemClock) -> GitHubApp:
    return GitHubApp(
        api_url=settings.github_api_url,
        app_id=settings.app_id,
        read_key=SecretValue(settings.app_key_secret_arn),
        clock=clock,
    )


def _hub(app: GitHubApp, place: Place) -> RestHub:
    return RestHub(app.client_for(place, TALK), place.repository, author=functools.partial(app.author, place))


def _remarks(app: GitHubApp, origin: GitHubOrigin) -> Reviews:
    return Reviews(app.client_for(origin, RESOLVE), origin.repository, origin.number)
