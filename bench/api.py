"""POST /execute, warm, against a bare Lambda on the same HTTP API, behind the same authorizer and the same door.

What makes it fair:
- The bare function answers at once and logs one line: in the embedded AWS one that logs nothing takes 50 ms longer.
- The two take turns, so whatever else the machine does hits both alike.
- A started run is the result of the request and no part of it. The caller's slots are taken by runs that never end, so
  each new run goes to its place in line and stays there; the next request waits until it has arrived.
"""

from __future__ import annotations

import io
import statistics
import time
import zipfile
from typing import TYPE_CHECKING

import httpx

from bench.stack import new_user, running_run, wait_until
from sandpiper.adapters.slots import DynamoSlots
from sandpiper.limits import DEFAULT_CONCURRENCY

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.report import Report
    from bench.stack import Stack

WARM_UP = 10
REQUESTS = 80
GOAL = 3.0
NAME = "sandpiper-bench-bare"
SOURCE = """
def handler(event, context):
    print("answered")
    return {"statusCode": 202, "headers": {"Content-Type": "application/json"}, "body": '{"success": true}'}
"""


def run(report: Report, stack: Stack) -> None:
    add_bare_route(stack)
    user = new_user()
    hold_all_slots(stack, user)
    runs = stack.runs()
    with httpx.Client(
        base_url=stack.api_url, headers={"Authorization": f"Bearer {stack.token(user)}"}, timeout=40
    ) as http:

        def bare() -> float:
            return timed(lambda: http.post(f"/{NAME}", json={"task": "bench"}))[0]

        def execute() -> float:
            seconds, answer = timed(lambda: http.post("/execute", json={"task": "bench"}))
            run_id = answer.json()["run_id"]
            wait_until(lambda: runs.get(run_id).queue_position is not None)
            return seconds

        samples = [(bare(), execute()) for _ in range(WARM_UP + REQUESTS)][WARM_UP:]
    base, ours = (statistics.median(column) * 1000 for column in zip(*samples, strict=True))
    slow = statistics.quantiles([sample[1] for sample in samples], n=20)[-1] * 1000
    report.add(
        "`POST /execute`, warm, p50",
        measured=f"{ours:.1f} ms (p95 {slow:.1f} ms, {REQUESTS} requests)",
        baseline=f"{base:.1f} ms, a bare Lambda behind the same authorizer",
        ratio=f"{ours / base:.2f}×",
        goal=f"≤ {GOAL:g}×",
        met=ours / base <= GOAL,
    )


def timed(send: Callable[[], httpx.Response]) -> tuple[float, httpx.Response]:
    begin = time.perf_counter()
    answer = send()
    seconds = time.perf_counter() - begin
    assert answer.status_code == 202, answer.text
    return seconds, answer


def hold_all_slots(stack: Stack, user: str) -> None:
    runs, slots = stack.runs(), DynamoSlots(stack.aws("dynamodb"), runs_table=stack.outputs["RunsTable"])
    for _ in range(DEFAULT_CONCURRENCY):
        run = runs.get(running_run(runs, user))
        slots.acquire(run.scopes[0], run.run_id, since=run.created_at, limit=DEFAULT_CONCURRENCY, token="none")


def add_bare_route(stack: Stack, name: str = NAME, *, like: str = "POST /execute") -> None:
    """POST /{name} on our own HTTP API, behind the authorizer that another route has, or behind none."""
    functions, gateway, api = stack.aws("lambda"), stack.aws("apigatewayv2"), stack.outputs["HttpApiId"]
    role = functions.get_function_configuration(FunctionName=stack.outputs["ReconcileFunctionArn"])["Role"]
    arn = functions.create_function(
        FunctionName=name, Runtime="python3.13", Handler="bare.handler", Role=role, Code={"ZipFile": zipped(SOURCE)}
    )["FunctionArn"]
    functions.add_permission(
        FunctionName=name, StatementId="http-api", Action="lambda:InvokeFunction", Principal="apigateway.amazonaws.com"
    )
    integration = gateway.create_integration(
        ApiId=api, IntegrationType="AWS_PROXY", IntegrationUri=arn, PayloadFormatVersion="2.0"
    )["IntegrationId"]
    routes = gateway.get_routes(ApiId=api)["Items"]
    model = next(route for route in routes if route["RouteKey"] == like)
    asks = {key: model[key] for key in ("AuthorizationType", "AuthorizerId") if model.get(key)}
    gateway.create_route(ApiId=api, RouteKey=f"POST /{name}", Target=f"integrations/{integration}", **asks)


def zipped(source: str) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("bare.py", source)
    return archive.getvalue()
