"""Quotas as a caller and an admin meet them, and the sweep that finds what was left."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.support import Person, finishes, new_task, plans, refusal, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.e2e.conftest import Stack

SWEEP = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}
NOTHING: dict[str, list[str]] = {
    name: [] for name in ("runs", "executions", "slots", "calls", "checkpoints", "secrets")
}


@pytest.fixture
def person(stack: Stack) -> Iterator[Person]:
    with Person(stack) as made:
        yield made
        for run in made.http.get("/runs").json()["runs"]:
            made.cancel(run["run_id"])


@pytest.fixture
def admin(stack: Stack) -> Iterator[httpx.Client]:
    with stack.client(token=stack.token("root", scope="admin")) as client:
        yield client


def test_many_starts_at_once_are_let_in_up_to_the_limit_and_the_rest_is_told_when(
    stack: Stack, person: Person, admin: httpx.Client
) -> None:
    assert admin.put(f"/quotas/users/{person.name}", json={"starts_per_minute": 3}).status_code == 200
    body = {"task": new_task(stack, plans(), finishes())}
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda n: person.execute(body, Idempotency_Key=f"key-{n}"), range(12)))
    started = [n for n, answer in enumerate(answers) if answer.status_code == 202]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert (len(started), len(refused)) == (3, 9)
    error = refused[0].json()["error"]
    assert (error["type"], error["retryable"]) == ("quota_exceeded", True)
    assert 0 < int(refused[0].headers["retry-after"]) <= 60
    (detail,) = error["details"]
    assert (detail["field"], detail["scope"], detail["limit"], detail["used"]) == ("starts_per_minute", "user", 3, 3)
    again = person.execute(body, Idempotency_Key=f"key-{started[0]}")
    assert again.json()["run_id"] == answers[started[0]].json()["run_id"]
    (own, _) = person.http.get("/usage").json()["quotas"]
    left = {use["name"]: use["left"] for use in own["limits"]}
    assert left["starts_per_minute"] == 0
    assert person.http.get("/usage").json()["runs"] == 3


def test_only_an_admin_sets_quotas(person: Person, admin: httpx.Client) -> None:
    path = f"/quotas/users/{person.name}"
    refusal(person.http.put(path, json={"concurrency": 99}), 403, "permission_error")
    refusal(person.http.get(path), 403, "permission_error")
    limits = {use["name"]: use["limit"] for use in admin.get(path).json()["quota"]["limits"]}
    assert limits["concurrency"] == 2


def test_the_sweep_finds_nothing_in_a_healthy_system_and_mends_what_is_damaged(stack: Stack, person: Person) -> None:
    """One story: each look needs the one before."""
    run_id = person.start({"task": new_task(stack, plans(), finishes())}, X_GitHub_Token="x" * 20)
    assert person.end_of(run_id)["status"] == "completed"
    wait_for(lambda: sweep(stack) == NOTHING or None, seconds=20)

    gone = f"run-{uuid.uuid4().hex[:26]}"
    table, dynamodb = stack.outputs["RunsTable"], stack.aws("dynamodb")
    slots = {"pk": {"S": f"OWNER#nobody-{gone}"}, "sk": {"S": "SLOTS"}, "version": {"N": "1"}, "active": {"SS": [gone]}}
    secrets = {"pk": {"S": f"RUN#{gone}"}, "sk": {"S": "SECRETS"}, "ciphertext": {"B": b"x"}}
    for row in (slots, secrets):
        dynamodb.put_item(TableName=table, Item=row)
    bucket = {"Bucket": stack.outputs["ArtifactsBucket"]}
    stack.aws("s3").put_object(**bucket, Key=f"runs/{gone}/checkpoint/1/tree", Body=b"x")

    assert sweep(stack) == NOTHING | {"slots": [gone], "checkpoints": [gone], "secrets": [gone]}
    assert "Contents" not in stack.aws("s3").list_objects_v2(**bucket, Prefix=f"runs/{gone}/")
    assert sweep(stack) == NOTHING


def sweep(stack: Stack) -> dict[str, Any]:
    answer = stack.aws("lambda").invoke(
        FunctionName=stack.outputs["ReconcileFunctionArn"], Payload=json.dumps(SWEEP).encode()
    )
    found: dict[str, Any] = json.loads(answer["Payload"].read())
    return found
