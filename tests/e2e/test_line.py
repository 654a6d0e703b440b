"""The line of one person's runs, two of which go on at once; and the list of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.support import ENDED, Person, finishes, new_task, of_type, plans, refusal, shell, types_of, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.conftest import Stack


@dataclass
class Line:
    """Two runs in the slots, three in line behind them, in the order in which they came."""

    person: Person
    working: list[str]
    waiting: list[str]


@pytest.fixture(scope="module")
def line(stack: Stack) -> Iterator[Line]:
    sleeps = new_task(stack, plans(), shell("sleep 600"), finishes())
    quick = new_task(stack, plans(), finishes())
    with Person(stack) as person:
        working = [person.start({"task": sleeps, "repo": None}) for _ in range(2)]
        for run_id in working:
            person.event(run_id, "run_dispatched")
        waiting = [_start_and_wait_in_line(person, task) for task in (sleeps, quick, quick)]
        yield Line(person, working, waiting)
        for run_id in (*working, *waiting):
            person.cancel(run_id)


def _start_and_wait_in_line(person: Person, task: str) -> str:
    run_id = person.start({"task": task})
    person.event(run_id, "run_slot_waiting")
    return run_id


def test_the_line_goes_on_as_slots_become_free_and_leaks_none(stack: Stack, line: Line) -> None:
    """One story, because each step needs the one before."""
    person = line.person
    first, second, third = line.waiting
    waiting = [person.run(run_id) for run_id in line.waiting]
    assert [(run["status"], run["queue_position"]) for run in waiting] == [("queued", 1), ("queued", 2), ("queued", 3)]
    told = [(data["position"], data["line"]) for data in of_type(person.events(second), "run_slot_waiting")]
    assert told == [(2, "user")]
    assert 0 < waiting[0]["estimated_wait_seconds"] <= waiting[2]["estimated_wait_seconds"]

    with Person(stack) as other:
        assert other.finish({"task": new_task(stack, plans(), finishes())})["status"] == "completed"

    assert person.cancel(second).status_code == 202
    assert person.end_of(second)["status"] == "cancelled"
    assert "run_dispatched" not in types_of(person.events(second))
    assert person.run(first)["status"] == "queued"
    wait_for(lambda: person.run(third)["queue_position"] == 2 or None)

    oldest = line.working[0]
    person.event(oldest, "tool_started")
    assert person.http.post(f"/runs/{oldest}/pause", json={"now": True}).status_code == 200
    person.event(first, "run_dispatched")
    wait_for(lambda: person.run(third)["queue_position"] == 1 or None)
    person.suspended(oldest)
    assert person.http.post(f"/runs/{oldest}/resume").status_code == 200
    wait_for(lambda: person.run(oldest)["queue_position"] == 1 or None)
    wait_for(lambda: person.run(third)["queue_position"] == 2 or None)
    assert [data["position"] for data in of_type(person.events(third), "run_slot_waiting")] == [3, 2, 1, 2]

    assert person.cancel(first).status_code == 202
    assert person.end_of(oldest)["status"] == "completed"  # it was told that its command was broken off
    ended = person.end_of(third)
    assert (ended["status"], ended["queue_position"]) == ("completed", None)
    types = types_of(person.events(third))
    assert types.index("run_slot_waiting") < types.index("run_dispatched")
    assert person.run(line.working[1])["status"] == "running"

    assert person.cancel(line.working[1]).status_code == 202
    assert {person.end_of(run_id)["status"] for run_id in (first, line.working[1])} == {"cancelled"}
    wait_for(lambda: None if _slots(stack, person.name) else True)


def _slots(stack: Stack, owner: str) -> list[str]:
    """Runs that are named in what the store keeps about the owner's slots and line."""
    rows = stack.aws("dynamodb").query(
        TableName=stack.outputs["RunsTable"],
        KeyConditionExpression="pk = :owner",
        ExpressionAttributeValues={":owner": {"S": f"OWNER#{owner}"}},
        ConsistentRead=True,
    )["Items"]
    return [word for row in rows for word in repr(row).split("'") if word.startswith("run-")]


def test_runs_are_listed_newest_first_page_by_page(line: Line) -> None:
    expected = [*reversed(line.waiting), *reversed(line.working)]
    listed: list[str] = []
    cursor: str | None = None
    while True:
        page = _list(line.person, limit=2, **({"cursor": cursor} if cursor else {}))
        listed += [run["run_id"] for run in page["runs"]]
        assert len(page["runs"]) <= 2
        if (cursor := page["cursor"]) is None:
            break
    assert listed == expected


def test_runs_are_listed_by_status_and_repository(line: Line) -> None:
    live = [run for run in _list(line.person)["runs"] if run["status"] not in ENDED]
    queued = _list(line.person, status="queued")["runs"]
    assert all(run["status"] == "queued" for run in queued)
    assert len(queued) <= len(live)
    assert _list(line.person, repo="owner/other")["runs"] == []


def test_a_stranger_sees_none_of_the_runs(stack: Stack, line: Line) -> None:
    with Person(stack) as stranger:
        assert _list(stranger) == {"success": True, "runs": [], "cursor": None}


@pytest.mark.parametrize("how", ["cut", "flipped", "of somebody else", "rubbish"])
def test_a_tampered_cursor_is_refused(stack: Stack, line: Line, how: str) -> None:
    cursor = _list(line.person, limit=1)["cursor"]
    flipped = cursor[:10] + ("A" if cursor[10] != "A" else "B") + cursor[11:]
    sent = {"cut": cursor[:-4], "flipped": flipped, "of somebody else": cursor, "rubbish": "../../x"}[how]
    with Person(stack) as stranger:
        asking = stranger if how == "of somebody else" else line.person
        refusal(asking.http.get("/runs", params={"cursor": sent, "limit": 1}), 400, "validation_error")


def _list(person: Person, **query: Any) -> dict[str, Any]:
    answer = person.http.get("/runs", params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())
