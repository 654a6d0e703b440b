"""/quotas and what their being used up looks like to a caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandpiper import limits as core_limits
from tests.unit.logic.world import ANN

if TYPE_CHECKING:
    from tests.unit.functions.support import Answer, Api

BODY = {"task": "Fix it", "repo": "owner/repo"}


def put(api: Api, path: str, body: Any) -> Answer:
    return api.call("PUT", path, body, user="root", scope="runs admin")


def limits(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200, answer.body
    return {use["name"]: use["limit"] for use in answer.body["quota"]["limits"]}


@pytest.mark.parametrize("path", ["/quotas/users/ann", "/quotas/orgs/acme"])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_quotas_are_for_admins(api: Api, method: str, path: str) -> None:
    answer = api.call(method, path, {"concurrency": 50} if method == "PUT" else None, scope="runs:admin administrator")
    assert (answer.status, answer.error["type"]) == (403, "permission_error")
    assert limits(api.call("GET", path, user="root", scope="admin"))["concurrency"] in {1, None}


@pytest.mark.parametrize("path", ["/quotas/users/github:octo-cat", "/quotas/users/a@example.com", "/quotas/orgs/acme"])
def test_an_admin_sets_all_limits_at_once_and_what_is_left_out_is_the_default_again(api: Api, path: str) -> None:
    assert limits(put(api, path, {"starts_per_minute": 9, "monthly_usd": 12.5}))["starts_per_minute"] == 9
    answer = put(api, path, {"starts_per_day": 3})
    assert limits(answer) | {"concurrency": 0} == {
        "starts_per_minute": None, "starts_per_day": 3, "monthly_usd": None, "concurrency": 0,
    }  # fmt: skip
    assert answer.body["quota"]["name"] == path.rpartition("/")[2]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"starts_per_minute": 0}, "starts_per_minute"),
        ({"monthly_usd": -1}, "monthly_usd"),
        ({"concurrency": "2"}, "concurrency"),
        ({"starts_per_day": 10**9}, "starts_per_day"),
        ({"starts": 1}, "starts"),
    ],
)
def test_a_limit_that_makes_no_sense_is_a_422(api: Api, body: dict[str, Any], field: str) -> None:
    answer = put(api, "/quotas/users/ann", body)
    assert (answer.status, answer.fields) == (422, [field])


def test_a_start_over_a_quota_is_a_429_that_says_what_is_used_up_and_when_to_come_back(api: Api) -> None:
    put(api, "/quotas/users/ann", {"starts_per_minute": 1})
    assert api.call("POST", "/execute", BODY).status == 202
    api.rules.clock.advance(20)
    answer = api.call("POST", "/execute", BODY)
    assert (answer.status, answer.headers["retry-after"]) == (429, "40")
    assert (answer.error["type"], answer.error["retryable"]) == ("quota_exceeded", True)
    assert answer.error["details"] == [
        {
            "field": "starts_per_minute",
            "message": "1 runs may be started in a minute",
            "scope": "user",
            "limit": 1,
            "used": 1,
            "opens_at": "2026-01-01T12:01:00Z",
        }
    ]
    assert api.call("POST", "/execute", BODY, user="bob").status == 202
    api.rules.clock.advance(40)
    assert api.call("POST", "/execute", BODY).status == 202


def test_an_idempotency_key_that_met_a_full_quota_can_be_used_when_there_is_room(api: Api) -> None:
    put(api, "/quotas/users/ann", {"starts_per_minute": 1})
    first = api.call("POST", "/execute", BODY, {"Idempotency-Key": "one"})
    assert api.call("POST", "/execute", BODY, {"Idempotency-Key": "one"}).body["run_id"] == first.body["run_id"]
    assert api.call("POST", "/execute", BODY, {"Idempotency-Key": "two"}).status == 429
    api.rules.clock.advance(60)
    assert api.call("POST", "/execute", BODY, {"Idempotency-Key": "two"}).status == 202


def test_usage_shows_what_is_left_of_ones_own_quotas(api: Api) -> None:
    put(api, "/quotas/users/ann", {"starts_per_day": 5, "concurrency": 2})
    api.rules.acquire(api.rules.start())
    (user, org) = api.call("GET", "/usage").body["quotas"]
    assert (user["scope"], user["name"], org["scope"], org["name"]) == ("user", "ann", "org", "acme")
    left = {use["name"]: use["left"] for use in user["limits"]}
    assert left == {"starts_per_minute": None, "starts_per_day": 4, "monthly_usd": None, "concurrency": 1}


def test_a_raised_concurrency_lets_those_who_wait_go_on_at_once(api: Api) -> None:
    tokens = [api.rules.acquire(api.rules.start(ANN)) for _ in range(3)]
    put(api, "/quotas/users/ann", {"concurrency": 2})
    assert [token in api.rules.workflow.answers for token in tokens] == [True, True, False]


def test_one_ticket_too_many_is_a_429(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_limits, "TICKETS_PER_MINUTE", 1)
    assert api.call("POST", "/tickets").status == 200
    answer = api.call("POST", "/tickets")
    assert (answer.status, answer.error["type"], answer.headers["retry-after"]) == (429, "quota_exceeded", "60")
