"""A run that asks: it waits for free, and the answer is the result of its question. Messages reach one that works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper_local.scripted_model.conversation import last_tool_results
from tests.e2e.support import (
    Person,
    finishes,
    new_task,
    of_type,
    plans,
    refusal,
    requests_for,
    sandbox_processes,
    says,
    shell,
    tool,
    types_of,
    wait_for,
)

if TYPE_CHECKING:
    from tests.e2e.conftest import Stack

QUESTION = "Blue or green?"


def test_the_answer_is_the_result_of_the_question(stack: Stack) -> None:
    task = new_task(stack, plans(), says(tool("ask_user", question=QUESTION)), finishes("It is green."))
    with Person(stack) as person:
        run_id = person.start({"task": task})
        run = person.suspended(run_id)
        assert (run["suspend_reason"], run["question"]) == ("awaiting_input", QUESTION)
        wait_for(lambda: None if sandbox_processes(run_id) else True)
        refusal(person.http.post(f"/runs/{run_id}/resume"), 409, "conflict")
        assert len(requests_for(stack, task)) == 2, "a run that waits asks nothing of the model"

        answer = person.http.post(f"/runs/{run_id}/messages", json={"text": "Green, please"})
        assert answer.status_code == 200
        run = person.end_of(run_id)
        events = person.events(run_id)

    assert (run["status"], run["question"], run["usage"]["turns"]) == ("completed", None, 3)
    results = last_tool_results(requests_for(stack, task)[-1]["messages"])
    assert [(result.is_error, "Green, please" in result.text) for result in results] == [(False, True)]
    told = ["run_suspended", "run_message_received", "run_resumed", "run_completed"]
    assert [type_ for type_ in types_of(events) if type_ in told] == told


def test_two_questions_are_two_answers(stack: Stack) -> None:
    first, second = (says(tool("ask_user", question=question)) for question in ("First?", "Second?"))
    task = new_task(stack, plans(), first, second, finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task})
        for question in ("First?", "Second?"):
            wait_for(lambda asked=question: True if person.suspended(run_id)["question"] == asked else None)
            text = {"text": f"The answer to {question}"}
            assert person.http.post(f"/runs/{run_id}/messages", json=text).status_code == 200
        assert person.end_of(run_id)["status"] == "completed"
    answers = [last_tool_results(body["messages"])[0].text for body in requests_for(stack, task)[-2:]]
    assert ["The answer to First?" in answers[0], "The answer to Second?" in answers[1]] == [True, True]


def test_a_message_reaches_a_run_that_works_before_its_next_turn(stack: Stack) -> None:
    task = new_task(stack, plans(), shell("sleep 3"), finishes())
    with Person(stack) as person:
        run_id = person.start({"task": task})
        wait_for(lambda: "run_command" in str(of_type(person.events(run_id), "tool_started")) or None)
        assert person.http.post(f"/runs/{run_id}/messages", json={"text": "Mind the gap"}).status_code == 200
        assert person.end_of(run_id)["status"] == "completed"
    *_, before, last = (str(body["messages"]) for body in requests_for(stack, task))
    assert ("Mind the gap" in before, "Mind the gap" in last) == (False, True)
