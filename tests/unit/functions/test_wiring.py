"""Every function can be put together from the environment that the template gives it, without a call to AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from api import world as api
from authorizer import handler as authorizer
from authorizer.keys import PublishedKeys, SharedSecret
from broadcast import handler as broadcast
from github import world as github
from reconcile import handler as reconcile
from task_stopped import handler as task_stopped
from tests.unit.functions.test_api_service import ENVIRONMENT
from webhook import handler as webhook
from websocket import handler as websocket
from workflow import handler as workflow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STEPS = {
    "RUNS_TABLE": "runs",
    "EVENTS_TABLE": "events",
    "ARTIFACTS_BUCKET": "bucket",
    "CLUSTER_ARN": "cluster",
    "RUN_SECRETS_KEY_ID": "key",
    "CONCURRENCY": "2",
}
SOCKETS = {"CONNECTIONS_TABLE": "connections", "WEBSOCKET_MANAGEMENT_URL": "https://socket.test/live"}
CREDENTIALS = {"AWS_DEFAULT_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
GITHUB = {
    "RUNS_TABLE": "runs",
    "EVENTS_TABLE": "events",
    "IDEMPOTENCY_TABLE": "idempotency",
    "ARTIFACTS_BUCKET": "bucket",
    "STATE_MACHINE_ARN": "arn",
    "RUN_SECRETS_KEY_ID": "key",
    "GITHUB_URL": "https://github.com",
    "GITHUB_API_URL": "https://api.github.com",
    "GITHUB_APP_KEY_SECRET_ARN": "arn",
    "GITHUB_WEBHOOK_SECRET_ARN": "arn",
}
BUILDERS: list[tuple[Any, dict[str, str]]] = [
    (api.world, ENVIRONMENT),
    (authorizer.policy, {"JWT_SECRET_ARN": "arn"}),
    (websocket.subscriptions, {**SOCKETS, "RUNS_TABLE": "runs", "EVENTS_TABLE": "events"}),
    (broadcast.broadcast, SOCKETS),
    (workflow.steps, {**STEPS, "USE_SPOT": "false"}),
    (task_stopped.workflow, {}),
    (reconcile.reconciler, {**STEPS, "STATE_MACHINE_ARN": "arn"}),
    (webhook.world, {"GITHUB_WEBHOOK_SECRET_ARN": "arn", "GITHUB_FUNCTION": "github"}),
    (github.world, GITHUB),
]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    for builder, _ in BUILDERS:
        builder.cache_clear()
    yield
    for builder, _ in BUILDERS:
        builder.cache_clear()


@pytest.mark.parametrize(("build", "environment"), BUILDERS)
def test_a_function_is_wired_from_its_environment_and_once(
    build: Callable[[], object], environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert build() is build()


def test_requests_with_a_key_get_powertools_own_store(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    assert api.world().idempotency() is api.world().idempotency()


@pytest.mark.parametrize(("url", "kind"), [("", SharedSecret), ("https://id.test/jwks", PublishedKeys)])
def test_the_configuration_decides_the_algorithm(url: str, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JWT_SECRET_ARN", "arn")
    monkeypatch.setenv("JWKS_URL", url)
    keys, _ = authorizer.policy()
    assert isinstance(keys, kind)
