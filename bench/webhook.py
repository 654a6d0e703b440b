"""POST /github/webhook with a command, warm, against a bare Lambda on the same HTTP API, without an authorizer too.

The two take turns. What the command asks for is done after the answer; the next request waits until it is over.
"""

from __future__ import annotations

import json
import statistics
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from bench.api import add_bare_route, timed
from bench.stack import wait_until
from sandpiper.logic.github.signatures import signature

if TYPE_CHECKING:
    from bench.report import Report
    from bench.stack import Stack

WARM_UP = 10
REQUESTS = 60
GOAL = 3.0
NAME = "sandpiper-bench-open"
EXAMPLE = Path(__file__).parents[1] / "tests/fixtures/github/issue_comment.created.json"  # GitHub's own


def run(report: Report, stack: Stack) -> None:
    add_bare_route(stack, NAME, like="POST /github/webhook")
    body = json.dumps(_command()).encode()
    arn = stack.outputs["GitHubWebhookSecretArn"]
    secret = stack.aws("secretsmanager").get_secret_value(SecretId=arn)["SecretString"]
    headers = {"Content-Type": "application/json", "X-Hub-Signature-256": signature(secret, body)}
    dynamodb = stack.aws("dynamodb")
    with httpx.Client(base_url=stack.api_url, headers=headers, timeout=40) as http:

        def bare() -> float:
            return timed(lambda: http.post(f"/{NAME}", content=body))[0]

        def webhook() -> float:
            name = f"bench-{uuid.uuid4()}"
            named = {"X-GitHub-Event": "issue_comment", "X-GitHub-Delivery": name}
            seconds, _ = timed(lambda: http.post("/github/webhook", content=body, headers=named))
            wait_until(lambda: _is_over(dynamodb, stack.outputs["IdempotencyTable"], name))
            return seconds

        samples = [(bare(), webhook()) for _ in range(WARM_UP + REQUESTS)][WARM_UP:]
    base, ours = (statistics.median(column) * 1000 for column in zip(*samples, strict=True))
    slow = statistics.quantiles([sample[1] for sample in samples], n=20)[-1] * 1000
    report.add(
        "`POST /github/webhook` with a command, warm, p50",
        measured=f"{ours:.1f} ms (p95 {slow:.1f} ms, {REQUESTS} requests)",
        baseline=f"{base:.1f} ms, a bare Lambda",
        ratio=f"{ours / base:.2f}×",
        goal=f"≤ {GOAL:g}×",
        met=ours / base <= GOAL,
    )


def _command() -> dict[str, Any]:
    """As the App would get it."""
    payload: dict[str, Any] = json.loads(EXAMPLE.read_text()) | {"installation": {"id": 42}}
    payload["comment"]["body"] = "/implement " + "a logout button, please. " * 40
    return payload


def _is_over(dynamodb: Any, table: str, delivery: str) -> bool:
    """Without an App the command is refused at its first question to GitHub, and let go of."""
    found = dynamodb.get_item(TableName=table, Key={"id": {"S": f"github#delivery#{delivery}"}}, ConsistentRead=True)
    return bool(found.get("Item", {}).get("held_until") == {"N": "0"})
