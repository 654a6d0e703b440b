"""A run that has used up its turns: its work is kept, nothing of it runs, and it goes on where it stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.e2e.support import (
    Person,
    finishes,
    git,
    make_repository,
    new_task,
    of_type,
    plans,
    refusal,
    sandbox_processes,
    shell,
    types_of,
    wait_for,
    writes,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Stack


def requests_for(stack: Stack, task: str) -> list[dict[str, Any]]:
    return [entry["body"] for entry in stack.model.requests if task in str(entry["body"]["messages"][:1])]


def test_a_run_that_has_used_up_its_turns_goes_on_where_it_stopped(stack: Stack, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "project", {"a.txt": "a\n"})
    task = new_task(
        stack, plans("cat b.txt"), writes("b.txt", "b\n"), shell("cp b.txt c.txt"), finishes("Both are there.")
    )
    with Person(stack) as person:
        run_id = person.start({"task": task, "repo": str(repository), "max_turns": 3})
        run = person.suspended(run_id)
        assert (run["suspend_reason"], run["result"]["exhausted"]) == ("budget_exhausted", "max_turns")
        assert (run["usage"]["turns"], run["budget"]["max_turns"]) == (3, 3)
        assert "b.txt" in person.download(run_id, "diff").text
        wait_for(lambda: None if sandbox_processes(run_id) else True)
        sleeping = new_task(stack, plans(), shell("sleep 600"), finishes())
        others = [person.start({"task": sleeping}) for _ in range(2)]
        for other in others:
            person.event(other, "run_dispatched")
            person.cancel(other)
        for other in others:
            person.end_of(other)

        assert person.http.post(f"/runs/{run_id}/budget", json={}).status_code == 200
        assert person.http.post(f"/runs/{run_id}/budget", json={}).status_code == 200
        run = person.end_of(run_id)
        events = person.events(run_id)

    assert (run["status"], run["attempt"], run["result"]["summary"]) == ("completed", 2, "Both are there.")
    assert (run["usage"]["turns"], run["budget"]["max_turns"]) == (4, 27)
    assert len(requests_for(stack, task)) == 4, "no reply is paid for twice"
    branch = run["result"]["commit"]["branch"]
    assert [git("show", f"{branch}:{name}.txt", at=repository) for name in "bc"] == ["b", "b"]
    told = ["agent_budget_exhausted", "run_suspended", "agent_budget_extended", "run_resumed", "run_completed"]
    assert [type_ for type_ in types_of(events) if type_ in told] == told
    assert of_type(events, "agent_budget_extended")[0]["new"] == {"max_turns": 27}
    assert "run_recovered" not in types_of(events)


def test_a_limit_that_is_raised_while_the_run_works_is_in_force_at_once(stack: Stack) -> None:
    task = new_task(stack, plans(), shell("sleep 3"), shell("true"), finishes("With more turns."))
    with Person(stack) as person:
        run_id = person.start({"task": task, "max_turns": 2})
        wait_for(lambda: "run_command" in str(of_type(person.events(run_id), "tool_started")) or None)
        refused = refusal(person.http.post(f"/runs/{run_id}/budget", json={"maxTurns": 1}), 422, "validation_error")
        assert refused["details"][0]["field"] == "max_turns"
        assert person.http.post(f"/runs/{run_id}/budget", json={"maxTurns": 10}).status_code == 200
        run = person.end_of(run_id)
        assert (run["status"], run["attempt"], run["usage"]["turns"]) == ("completed", 1, 4)
        refusal(person.http.post(f"/runs/{run_id}/budget", json={"max_turns": 60}), 409, "conflict")


def test_a_dollar_limit_stops_the_run_and_once_more_of_it_lets_it_finish(stack: Stack) -> None:
    dear = {"usage": {"input_tokens": 100_000, "output_tokens": 1_000}}
    task = new_task(stack, plans() | dear, shell("true"), finishes("Paid for."))
    with Person(stack) as person:
        run_id = person.start({"task": task, "max_cost_usd": 0.05})
        run = person.suspended(run_id)
        spent = run["usage"]["cost_usd"]
        assert (run["result"]["exhausted"], spent > 0.05) == ("max_cost_usd", True)
        answer = person.http.post(f"/runs/{run_id}/budget", json={"max_cost_usd": spent + 5})
        assert answer.status_code == 200
        assert person.end_of(run_id)["status"] == "completed"
        assert person.http.get("/usage").json()["cost_usd"] == person.run(run_id)["usage"]["cost_usd"]
