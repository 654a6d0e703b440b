from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.logic import log_parts
from sandpiper.logic.log_parts import LogPart
from sandpiper.logic.outcomes import Ending
from sandpiper.models.run import CommitInfo, PullRequestInfo, RunResult
from tests.unit.logic.world import BOB

if TYPE_CHECKING:
    from tests.unit.functions.support import Api


def completed(api: Api) -> str:
    run_id = api.rules.running()
    result = RunResult(
        outcome="completed",
        summary="Added it",
        commit=CommitInfo(sha="abc", branch="b", message="feat: it", pushed=True),
        pull_request=PullRequestInfo(number=2, url="https://github.com/acme/till/pull/2"),
        ci="passed",
        log_key=f"runs/{run_id}/attempts/1/log.txt",
        diff_key=f"runs/{run_id}/attempts/1/diff.patch",
    )
    api.rules.steps.finalize(run_id, Ending(result_key=api.rules.hand_in(run_id, result)))
    return run_id


def test_a_run_shows_its_result_without_keys_of_the_store(api: Api) -> None:
    run_id = completed(api)
    answer = api.call("GET", f"/runs/{run_id}")
    run = answer.body["run"]
    assert (answer.status, run["status"], run["task"], run["attempt"]) == (200, "completed", "Add a logout button", 1)
    assert (run["result"]["summary"], run["result"]["commit"]["sha"]) == ("Added it", "abc")
    assert (run["result"]["log_url"], run["result"]["diff_url"]) == (f"/runs/{run_id}/logs", f"/runs/{run_id}/diff")
    assert not {"log_key", "diff_key"} & run["result"].keys()


def test_a_run_names_its_pull_request_and_what_ci_said(api: Api) -> None:
    result = api.call("GET", f"/runs/{completed(api)}").body["run"]["result"]
    assert result["pull_request"] == {"number": 2, "url": "https://github.com/acme/till/pull/2", "draft": False}
    assert result["ci"] == "passed"


def test_an_id_that_is_too_long_for_the_database_is_one_that_does_not_exist(api: Api) -> None:
    answer = api.call("GET", f"/runs/{'x' * 3000}")
    assert (answer.status, answer.body["error"]["type"]) == (404, "not_found")
    assert len(answer.body["error"]["message"]) < 300


def test_no_token_of_the_state_machine_is_shown(api: Api) -> None:
    api.rules.acquire(api.rules.start())
    run_id = api.rules.start()
    token = api.rules.acquire(run_id)
    answer = api.call("GET", f"/runs/{run_id}")
    assert answer.body["run"]["queue_position"] == 1
    assert token not in str(answer.body)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/runs/{}", None),
        ("GET", "/runs/{}/events", None),
        ("GET", "/runs/{}/logs", None),
        ("GET", "/runs/{}/diff", None),
        ("POST", "/runs/{}/cancel", None),
        ("POST", "/runs/{}/budget", {"max_turns": 60}),
        ("POST", "/runs/{}/messages", {"text": "Hello"}),
        ("POST", "/runs/{}/resume", None),
    ],
)
def test_another_owners_run_is_answered_exactly_as_one_that_does_not_exist(
    api: Api, method: str, path: str, body: Any
) -> None:
    theirs, missing = api.rules.start(BOB), "run-" + "0" * 26
    answers = [api.call(method, path.format(run_id), body) for run_id in (theirs, missing)]
    assert [answer.status for answer in answers] == [404, 404]
    first, second = (str(answer.body) for answer in answers)
    assert first.replace(theirs, "X") == second.replace(missing, "X")


def test_the_list_is_newest_first_and_goes_on_where_the_cursor_says(api: Api) -> None:
    made = [api.rules.start() for _ in range(5)]
    api.rules.start(BOB)
    first = api.call("GET", "/runs?limit=3").body
    second = api.call("GET", f"/runs?limit=3&cursor={first['cursor']}").body
    assert [run["run_id"] for run in first["runs"] + second["runs"]] == made[::-1]
    assert second["cursor"] is None


@pytest.mark.parametrize(
    ("query", "count"),
    [("status=queued", 1), ("status=completed", 1), ("status=failed", 0), ("repo=owner/repo", 2), ("repo=x/y", 0)],
)
def test_the_list_can_be_narrowed(api: Api, query: str, count: int) -> None:
    completed(api)
    api.rules.start()
    assert len(api.call("GET", f"/runs?{query}").body["runs"]) == count


@pytest.mark.parametrize("cursor", ["rubbish", "e30", "%00", "", "_" * 3000])
def test_a_cursor_that_we_did_not_make_is_a_400(api: Api, cursor: str) -> None:
    answer = api.call("GET", f"/runs?cursor={cursor}")
    assert (answer.status, answer.error["type"]) == (400, "validation_error")


def test_a_cursor_of_another_owner_is_a_400(api: Api) -> None:
    for _ in range(2):
        api.rules.start(BOB)
    cursor = api.call("GET", "/runs?limit=1", user="bob").body["cursor"]
    assert api.call("GET", f"/runs?cursor={cursor}").status == 400


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/runs?limit=0", "limit"),
        ("/runs?limit=201", "limit"),
        ("/runs?limit=ten", "limit"),
        ("/runs?status=gone", "status"),
        ("/runs/run-1/events?after=-1", "after"),
        ("/runs/run-1/events?after=x", "after"),
        ("/runs/run-1/events?limit=1000", "limit"),
    ],
)
def test_a_wrong_parameter_is_named(api: Api, path: str, field: str) -> None:
    answer = api.call("GET", path)
    assert (answer.status, answer.fields) == (422, [field])


def test_the_event_log_is_read_from_a_number_on(api: Api) -> None:
    run_id = api.rules.dispatched()
    answer = api.call("GET", f"/runs/{run_id}/events?after=1").body
    assert answer == {
        "success": True,
        "events": [
            {
                "run_id": run_id,
                "seq": 2,
                "ts": "2026-01-01T12:00:01Z",
                "attempt": 1,
                "type": "run_dispatched",
                "data": {"attempt": 1},
            }
        ],
        "last_seq": 2,
    }


@pytest.mark.parametrize(("what", "file"), [("logs", "log.txt"), ("diff", "diff.patch")])
def test_logs_and_diff_are_links_that_say_when_they_end(api: Api, what: str, file: str) -> None:
    run_id = completed(api)
    answer = api.call("GET", f"/runs/{run_id}/{what}")
    assert answer.status == 200
    assert f"runs/{run_id}/attempts/1/{file}" in answer.body["url"]
    assert answer.body["expires_at"] == "2026-01-01T12:15:01Z"


def test_a_run_at_work_has_links_to_the_parts_of_its_log(api: Api) -> None:
    run_id = api.rules.running()
    for part in (LogPart(1, 1, 3, 9), LogPart(1, 2)):
        log_parts.store(api.rules.blobs, run_id, part, b"text")
    first = api.call("GET", f"/runs/{run_id}/logs?limit=1").body
    rest = api.call("GET", f"/runs/{run_id}/logs?after={first['parts'][0]['name']}").body
    assert (first["url"], rest["url"]) == (None, None)
    shown = [{**part, "url": None} for part in (*first["parts"], *rest["parts"])]
    assert shown == [
        {"name": "000001-00000001.3-9.log.gz", "attempt": 1, "first_seq": 3, "last_seq": 9, "url": None},
        {"name": "000001-00000002.0-0.log.gz", "attempt": 1, "first_seq": None, "last_seq": None, "url": None},
    ]


@pytest.mark.parametrize("after", ["", "x", "..%2F000001-00000001.0-0.log.gz", "000001-00000001.0-0.log.gz%0A"])
def test_what_is_no_name_of_a_part_of_a_log_is_refused(api: Api, after: str) -> None:
    answer = api.call("GET", f"/runs/{api.rules.running()}/logs?after={after}")
    assert (answer.status, [detail["field"] for detail in answer.error["details"]]) == (422, ["after"])


def test_what_is_not_there_yet_is_a_404_in_words(api: Api) -> None:
    answer = api.call("GET", f"/runs/{api.rules.running()}/logs")
    assert (answer.status, answer.error["message"]) == (404, "There is no log yet.")


def test_cancelling_is_a_202_each_time_then_a_200(api: Api) -> None:
    run_id = api.rules.running()
    path = f"/runs/{run_id}/cancel"
    first, second = api.call("POST", path), api.call("POST", path)
    assert [first.status, second.status, first.body["run"]["cancel_requested"]] == [202, 202, True]
    api.rules.steps.finalize(run_id, Ending(cancelled=True))
    third = api.call("POST", path)
    assert (third.status, third.body["run"]["status"]) == (200, "cancelled")


def test_cancelling_what_has_ended_otherwise_is_a_409(api: Api) -> None:
    answer = api.call("POST", f"/runs/{completed(api)}/cancel")
    assert (answer.status, answer.error["type"]) == (409, "conflict")


def test_a_ticket_opens_the_socket_it_names(api: Api) -> None:
    answer: dict[str, Any] = api.call("POST", "/tickets").body
    assert (answer["websocket_url"], answer["expires_at"]) == ("wss://socket.test/live", "2026-01-01T12:01:00Z")
    assert api.rules.connections.redeem_ticket(answer["ticket"], now=0) == {"user": "ann", "org": "acme"}
