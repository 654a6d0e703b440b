"""Raising budgets, messages, resuming and what was used, as the HTTP API answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.logic.outcomes import Ending
from sandpiper.models.run import Budget, RunResult, Usage
from sandpiper.models.spec import RunSpec

if TYPE_CHECKING:
    from tests.unit.functions.support import Api

SPEC = RunSpec(task="Fix it", max_turns=3, max_cost_usd=1.0)
SPENT = RunResult(
    outcome="suspended",
    suspend_reason="budget_exhausted",
    exhausted="max_turns",
    limits=Budget(max_turns=3, max_cost_usd=1.0, timeout_seconds=900),
    usage=Usage(turns=3, input_tokens=10, cost_usd=0.25),
)
ASKS = RunResult(outcome="suspended", suspend_reason="awaiting_input", question="Which one?")


def test_a_suspended_run_says_why_what_it_used_and_what_it_may_use(api: Api) -> None:
    run_id, _ = api.rules.suspended(SPENT, SPEC)
    run = api.call("GET", f"/runs/{run_id}").body["run"]
    assert (run["status"], run["suspend_reason"], run["question"]) == ("suspended", "budget_exhausted", None)
    assert run["usage"]["cost_usd"] == 0.25
    limits = {"max_turns": 3, "max_cost_usd": 1.0, "max_total_tokens": None, "timeout_seconds": 900}
    assert (run["budget"], run["result"]["exhausted"]) == (limits, "max_turns")


def test_a_run_that_asks_shows_its_question_until_it_goes_on(api: Api) -> None:
    run_id, _ = api.rules.suspended(ASKS)
    assert api.call("GET", f"/runs/{run_id}").body["run"]["question"] == "Which one?"
    api.rules.acquire(run_id)
    assert api.call("GET", f"/runs/{run_id}").body["run"]["question"] is None


@pytest.mark.parametrize("body", [{}, {"max_turns": 27}, {"maxTurns": 27.0}])
def test_a_budget_lets_the_run_go_on_and_a_second_one_changes_nothing(api: Api, body: dict[str, Any]) -> None:
    run_id, token = api.rules.suspended(SPENT, SPEC)
    answers = [api.call("POST", f"/runs/{run_id}/budget", body) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].body == answers[1].body
    assert answers[0].body["run"]["budget"]["max_turns"] == 27
    assert api.rules.workflow.answers[token] == {"cancelled": False}


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"max_turns": 3}, ["max_turns"]),
        ({"max_turns": 2, "max_cost_usd": 0.5}, ["max_turns", "max_cost_usd"]),
        ({"max_total_tokens": 10}, ["max_total_tokens"]),
        ({"maxTurns": "5"}, ["maxTurns"]),
        ({"max_turns": 5.5}, ["max_turns"]),
        ({"max_turns": True}, ["max_turns"]),
        ({"max_turns": 10**9}, ["max_turns"]),
        ({"max_cost_usd": -1}, ["max_cost_usd"]),
        ({"timeout_seconds": 10**9}, ["timeout_seconds"]),
        ({"turns": 5}, ["turns"]),
        ([], ["body"]),
    ],
)
def test_a_wrong_limit_is_a_422_that_names_it(api: Api, body: Any, fields: list[str]) -> None:
    run_id, token = api.rules.suspended(SPENT, SPEC)
    answer = api.call("POST", f"/runs/{run_id}/budget", body)
    assert (answer.status, answer.fields) == (422, fields)
    assert token not in api.rules.workflow.answers


def test_a_run_that_has_not_used_up_its_budget_is_not_continued(api: Api) -> None:
    answer = api.call("POST", f"/runs/{api.rules.running()}/budget", {})
    assert (answer.status, answer.error["type"]) == (409, "conflict")


def test_a_message_is_numbered_and_sent_once_with_its_key(api: Api) -> None:
    path = f"/runs/{api.rules.running()}/messages"
    answers = [api.call("POST", path, {"text": "Hello"}, {"idempotency-key": "k"}) for _ in range(2)]
    assert [(answer.status, answer.body["n"]) for answer in answers] == [(200, 1), (200, 1)]
    other = api.call("POST", path, {"text": "Bye"}, {"idempotency-key": "k"})
    assert (other.status, other.error["type"]) == (409, "conflict")
    assert api.call("POST", path, {"text": "Hello"}).body["n"] == 2


@pytest.mark.parametrize("body", [{}, {"text": ""}, {"text": " \n"}, {"text": 5}, {"text": "x" * 8_001}])
def test_a_message_without_words_or_with_too_many_is_a_422(api: Api, body: Any) -> None:
    answer = api.call("POST", f"/runs/{api.rules.running()}/messages", body)
    assert (answer.status, answer.fields) == (422, ["text"])


def test_resuming_a_run_that_waits_for_an_answer_says_what_to_do(api: Api) -> None:
    run_id, _ = api.rules.suspended(ASKS)
    answer = api.call("POST", f"/runs/{run_id}/resume")
    assert (answer.status, "send it a message" in answer.error["message"]) == (409, True)


def test_resuming_a_running_run_leaves_it_as_it_is(api: Api) -> None:
    answer = api.call("POST", f"/runs/{api.rules.running()}/resume")
    assert (answer.status, answer.body["run"]["status"]) == (200, "running")


@pytest.mark.parametrize(
    ("what", "body"), [("budget", {"max_turns": 60}), ("messages", {"text": "x"}), ("resume", None)]
)
def test_what_has_ended_takes_nothing_more(api: Api, what: str, body: Any) -> None:
    run_id = api.rules.running()
    api.rules.steps.finalize(run_id, Ending(cancelled=True))
    answer = api.call("POST", f"/runs/{run_id}/{what}", body)
    assert (answer.status, answer.error["type"]) == (409, "conflict")


def test_usage_is_ones_own_and_of_this_month_unless_another_is_named(api: Api) -> None:
    api.rules.suspended(SPENT, SPEC)
    used = api.call("GET", "/usage").body
    assert [(quota["scope"], quota["name"]) for quota in used.pop("quotas")] == [("user", "ann"), ("org", "acme")]
    assert used == {
        "success": True, "month": "2026-01", "runs": 1, "turns": 3, "input_tokens": 10, "output_tokens": 0,
        "cache_read_tokens": 0, "cache_write_tokens": 0, "cost_usd": 0.25,
    }  # fmt: skip
    assert api.call("GET", "/usage?month=2025-12").body["runs"] == 0
    assert api.call("GET", "/usage", user="bob").body["runs"] == 0


@pytest.mark.parametrize("month", ["2026", "2026-13", "2026-1", "x", "", "２０２６-01"])
def test_what_is_no_month_is_a_422(api: Api, month: str) -> None:
    answer = api.call("GET", f"/usage?month={month}")
    assert (answer.status, answer.fields) == (422, ["month"])
