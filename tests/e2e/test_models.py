"""Whole runs on each wire to a model, and with a model that fails in every way that it can."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.support import Case, Person, finishes, make_repository, new_task, plans, says, writes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.conftest import Stack

BUSY = {"status": 529, "retry_after": 0}
NEW = writes("new.txt", "new\n")
# name → (replies of the model, the model that is asked for)
PLAYS: dict[str, tuple[tuple[dict[str, Any], ...], str]] = {
    "converse": ((plans(), NEW, finishes()), "mistral-large"),
    "bedrock": ((plans(), NEW, finishes()), "eu.anthropic.claude-sonnet-5-5"),
    "busy": ((plans(), NEW | {"fault": BUSY | {"times": 2}}, finishes()), "sonnet"),
    "cut": ((plans(), NEW | {"fault": {"cut_after_bytes": 700}}, finishes()), "sonnet"),
    "malformed": ((plans(), says({"name": "write_file", "raw_input": '{"path": "new'}), NEW, finishes()), "sonnet"),
    "refused": ((plans() | {"fault": {"status": 401, "message": "no such key"}},), "sonnet"),
}


@pytest.fixture(scope="module")
def cases(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Case]]:
    with ExitStack() as people:

        def start(task: str, model: str) -> Case:
            person = people.enter_context(Person(stack))
            repository = make_repository(tmp_path_factory.mktemp("repository") / "project", {"a.txt": "a\n"})
            return Case(person, person.start({"task": task, "repo": str(repository), "model": model}), repository)

        started = {name: start(new_task(stack, *replies), model) for name, (replies, model) in PLAYS.items()}
        yield started | {"away": start(_away(stack), "sonnet")}


def _away(stack: Stack) -> str:
    """Sonnet never answers after the plan; haiku does."""
    task = new_task(stack, plans(), NEW, finishes())
    busy = NEW | {"fault": BUSY | {"times": 99}}
    match = {"words": [task], "model": "claude-sonnet-*"}
    stack.model.add({"name": f"{task} away", "match": match, "replies": [plans(), busy, busy]})
    return task


@pytest.mark.parametrize("name", ["converse", "bedrock", "busy", "cut", "malformed", "away"])
def test_the_work_is_done_and_pushed(cases: dict[str, Case], name: str) -> None:
    case = cases[name]
    assert case.outcome == ("completed", None)
    assert case.run["result"]["commit"]["pushed"]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("converse", "/model/mistral.mistral-large-3-675b-instruct/converse-stream"),
        ("bedrock", "/model/eu.anthropic.claude-sonnet-5-5/invoke-with-response-stream"),
    ],
)
def test_bedrock_is_asked_by_its_own_wire(cases: dict[str, Case], stack: Stack, name: str, path: str) -> None:
    case = cases[name]
    asked = [entry for entry in stack.model.requests if case.run["task"] in str(entry["body"]["messages"][0])]
    assert [entry["path"] for entry in asked] == [path] * 3


def test_a_turn_that_is_tried_again_says_so_and_is_one_turn(cases: dict[str, Case]) -> None:
    failed = cases["busy"].told("agent_turn_failed")
    assert [(event["try"], event["retry_in_seconds"]) for event in failed] == [(1, 0), (2, 0)]
    assert len(cases["busy"].told("agent_turn_completed")) == 3


def test_a_reply_that_broke_off_is_asked_for_again(cases: dict[str, Case]) -> None:
    (failed,) = cases["cut"].told("agent_turn_failed")
    assert "broke off" in failed["error"]


def test_a_call_that_can_not_be_read_is_answered_to_the_model(cases: dict[str, Case]) -> None:
    (failed,) = cases["malformed"].told("tool_failed")
    assert "no JSON object" in failed["error"]


def test_a_model_that_stays_away_is_stood_in_for(cases: dict[str, Case]) -> None:
    warnings = [event for event in cases["away"].told("warning") if "instead_of" in event]
    assert [(event["instead_of"], event["model"]) for event in warnings] == [("claude-sonnet-5-5", "claude-haiku-5-5")]


def test_a_key_that_is_refused_ends_the_run_in_words(cases: dict[str, Case]) -> None:
    case = cases["refused"]
    assert case.outcome == ("failed", "model_request_error")
    assert "refused the key: no such key" in case.run["error"]["message"]
