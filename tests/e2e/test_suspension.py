"""Suspended and woken on the embedded AWS: the workflow, the API and their roles, whatever made the sandbox stop.

Its report is played here: it waits for a model that does not answer, its token is answered for it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sandpiper.adapters.blobs import S3Blobs
from sandpiper.errors import NotFound
from sandpiper.models.run import Budget, RunResult, Usage
from tests.e2e.support import (
    Person,
    finishes,
    new_task,
    of_type,
    plans,
    play,
    refusal,
    sandbox_processes,
    types_of,
    wait_for,
)

if TYPE_CHECKING:
    from tests.e2e.conftest import Stack

SPENT = RunResult(
    outcome="suspended",
    suspend_reason="budget_exhausted",
    exhausted="max_turns",
    limits=Budget(max_turns=3, timeout_seconds=900),
    usage=Usage(turns=3, input_tokens=100, output_tokens=20, cost_usd=0.125),
)
ASKS = RunResult(outcome="suspended", suspend_reason="awaiting_input", question="Which one?")


def blobs_of(stack: Stack) -> S3Blobs:
    return S3Blobs(stack.aws("s3"), bucket=stack.outputs["ArtifactsBucket"])


def working(stack: Stack, person: Person, **options: Any) -> tuple[str, str]:
    """A run whose sandbox waits for the model, and its task; from now on the model is quick."""
    task = new_task(stack, plans() | {"fault": {"delay_seconds": 600}}, finishes())
    run_id = person.start({"task": task, **options})
    wait_for(lambda: True if any(task in str(entry["body"]) for entry in stack.model.requests) else None)
    play(stack, task, plans(), finishes("After all."))
    return run_id, task


def report(stack: Stack, run_id: str, result: RunResult) -> None:
    key = f"runs/{run_id}/attempts/1/result.json"
    blobs_of(stack).put(key, result.model_dump_json().encode(), content_type="application/json")
    output = json.dumps({"outcome": "suspended", "result_key": key})
    stack.aws("stepfunctions").send_task_success(taskToken=_token(stack, run_id), output=output)


def _token(stack: Stack, run_id: str) -> str:
    ecs, cluster = stack.aws("ecs"), stack.outputs["ClusterArn"]
    tasks = ecs.list_tasks(cluster=cluster, startedBy=run_id)["taskArns"]
    (task,) = ecs.describe_tasks(cluster=cluster, tasks=tasks)["tasks"]
    environment = task["overrides"]["containerOverrides"][0]["environment"]
    return str(next(entry["value"] for entry in environment if entry["name"] == "TASK_TOKEN"))


def active_runs(stack: Stack, owner: str) -> set[str]:
    row = stack.aws("dynamodb").get_item(
        TableName=stack.outputs["RunsTable"],
        Key={"pk": {"S": f"OWNER#{owner}"}, "sk": {"S": "SLOTS"}},
        ConsistentRead=True,
    )
    return set(row["Item"].get("active", {}).get("SS", []))


def test_a_run_without_budget_waits_for_nothing_billed_and_continues(stack: Stack) -> None:
    with Person(stack) as person:
        run_id, _ = working(stack, person, max_turns=3)
        blobs_of(stack).put(f"runs/{run_id}/checkpoints/1/tree", b"x", content_type="application/octet-stream")
        report(stack, run_id, SPENT)
        run = person.suspended(run_id)
        assert (run["suspend_reason"], run["result"]["exhausted"]) == ("budget_exhausted", "max_turns")
        assert run["usage"]["cost_usd"] == 0.125
        wait_for(lambda: None if sandbox_processes(run_id) or run_id in active_runs(stack, person.name) else True)

        refusal(person.http.post(f"/runs/{run_id}/resume"), 409, "conflict")
        refused = refusal(person.http.post(f"/runs/{run_id}/budget", json={"max_turns": 3}), 422, "validation_error")
        assert refused["details"][0]["field"] == "max_turns"
        answers = [person.http.post(f"/runs/{run_id}/budget", json={}) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 200]

        run = person.end_of(run_id)
        assert (run["status"], run["attempt"], run["budget"]["max_turns"]) == ("completed", 2, 27)
        types = types_of(person.events(run_id))
        assert [types.count(told) for told in ("run_suspended", "agent_budget_extended", "run_resumed")] == [1, 1, 1]
        used = person.http.get("/usage").json()
        assert (used["runs"], used["turns"] >= 3, used["cost_usd"] >= 0.125) == (1, True, True)
        wait_for(lambda: True if _is_gone(stack, f"runs/{run_id}/checkpoints/1/tree") else None)


def test_an_answer_that_came_before_the_suspension_wakes_the_run_at_once(stack: Stack) -> None:
    with Person(stack) as person:
        run_id, _ = working(stack, person)
        said = [
            person.http.post(f"/runs/{run_id}/messages", json={"text": "The first"}, headers={"Idempotency-Key": "k"})
            for _ in range(2)
        ]
        assert [(answer.status_code, answer.json()["n"]) for answer in said] == [(200, 1), (200, 1)]
        report(stack, run_id, ASKS)
        assert person.end_of(run_id)["status"] == "completed"
        events = person.events(run_id)
    assert of_type(events, "run_message_received") == [{"n": 1, "by": person.name, "text": "The first"}]
    assert of_type(events, "run_suspended") == [{"reason": "awaiting_input", "question": "Which one?"}]
    assert types_of(events).count("run_resumed") == 1


def test_a_question_is_answered_or_the_run_is_cancelled_and_keeps_its_work(stack: Stack) -> None:
    with Person(stack) as person:
        (answered, _), (cancelled, _) = working(stack, person), working(stack, person)
        for run_id in (answered, cancelled):
            report(stack, run_id, ASKS.model_copy(update={"summary": "Half of it.", "log_key": f"runs/{run_id}/l"}))
        assert [person.suspended(run_id)["question"] for run_id in (answered, cancelled)] == ["Which one?"] * 2
        assert person.http.post(f"/runs/{answered}/messages", json={"text": "The first"}).status_code == 200
        assert person.cancel(cancelled).status_code == 202
        assert person.end_of(answered)["status"] == "completed"
        run = person.end_of(cancelled)
        assert (run["status"], run["result"]["outcome"], run["result"]["summary"]) == (
            "cancelled",
            "cancelled",
            "Half of it.",
        )
        assert run["result"]["log_url"]
        refusal(person.http.post(f"/runs/{cancelled}/messages", json={"text": "Too late"}), 409, "conflict")


def _is_gone(stack: Stack, key: str) -> bool:
    try:
        blobs_of(stack).get(key)
    except NotFound:
        return True
    return False
