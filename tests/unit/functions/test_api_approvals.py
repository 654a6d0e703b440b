"""Approvals and pauses, as the HTTP API answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.models.run import ApprovalRequest, RunResult

if TYPE_CHECKING:
    from tests.unit.functions.support import Api


def waiting(api: Api) -> tuple[str, str]:
    """A run that waits for an approval, and the token that it waits on."""
    run_id = api.rules.running()
    request = ApprovalRequest(
        id="ap-1",
        tool="run_command",
        shown={"command": "git push"},
        reason="It pushes.",
        risk="high",
        kind="push",
        requested_at=api.rules.clock.now(),
    )
    api.rules.runs.change(run_id, allowed=("running",), changes={"approval": request})
    result = RunResult(outcome="suspended", suspend_reason="awaiting_approval", approval=request)
    return run_id, api.rules.suspend(run_id, result)


def test_a_run_shows_what_it_asks_for_until_it_is_answered(api: Api) -> None:
    run_id, token = waiting(api)
    run = api.call("GET", f"/runs/{run_id}").body["run"]
    assert (run["suspend_reason"], run["approval"]["id"], run["approval"]["risk"]) == (
        "awaiting_approval",
        "ap-1",
        "high",
    )
    assert run["approval"]["shown"] == {"command": "git push"}
    body = {"decision": "approve", "scope": "run", "note": "Go"}
    answers = [api.call("POST", f"/runs/{run_id}/approvals/ap-1", body) for _ in range(2)]
    assert [(answer.status, answer.body["run"]["approval"]) for answer in answers] == [(200, None)] * 2
    assert api.rules.workflow.answers[token] == {"cancelled": False}
    assert api.call("POST", f"/runs/{run_id}/approvals/ap-1", {"decision": "reject"}).status == 409
    assert api.call("POST", f"/runs/{run_id}/approvals/ap-9", {"decision": "reject"}).status == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "decision"),
        ({"decision": "maybe"}, "decision"),
        ({"decision": "approve", "scope": "all"}, "scope"),
        ({"decision": "reject", "note": "x" * 2001}, "note"),
        ({"decision": "approve", "more": 1}, "more"),
    ],
)
def test_a_wrong_answer_is_refused_by_its_field(api: Api, body: dict[str, Any], field: str) -> None:
    run_id, _ = waiting(api)
    answer = api.call("POST", f"/runs/{run_id}/approvals/ap-1", body)
    assert (answer.status, answer.body["error"]["details"][0]["field"]) == (422, field)


def test_a_running_run_is_paused_and_one_in_line_is_not(api: Api) -> None:
    run_id = api.rules.running()
    assert [api.call("POST", f"/runs/{run_id}/pause", body).status for body in (None, {}, {"now": True})] == [200] * 3
    assert api.call("POST", f"/runs/{api.rules.start()}/pause", {}).status == 409
    assert api.call("POST", f"/runs/{run_id}/pause", {"now": "yes"}).status == 422
