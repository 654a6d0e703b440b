"""The log of a run at work, from its parts."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING

import pytest

from sandpiper_cli import client
from sandpiper_cli.client import Api
from sandpiper_cli.failures import ApiError
from sandpiper_cli.logs import write_log
from tests.unit.cli.fake_api import RUN_ID, TOKEN, FakeApi, a_run

if TYPE_CHECKING:
    from collections.abc import Callable


def part(text: str) -> bytes:
    return gzip.compress(text.encode())


def written(api: FakeApi, *, follow: bool, sleep: Callable[[float], None] = lambda _: None) -> str:
    target = io.BytesIO()
    with Api(api.url, TOKEN) as connected:
        size = write_log(connected, RUN_ID, target, follow=follow, sleep=sleep)
    assert size == len(target.getvalue())
    return target.getvalue().decode()


def test_a_run_at_work_shows_what_there_is_so_far(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PAGE", 2)
    api.run = a_run(status="running")
    api.files = {f"1-{number}": part(f"{number}\n") for number in range(5)}
    assert written(api, follow=False) == "0\n1\n2\n3\n4\n"


def test_the_whole_is_taken_where_there_is_one(api: FakeApi) -> None:
    api.files = {"logs": b"all of it"}
    assert written(api, follow=False) == "all of it"


def test_following_goes_on_as_the_run_does_and_ends_with_it(api: FakeApi) -> None:
    api.run = a_run(status="running")

    def work() -> None:
        api.files["1-1"] = part("one\n")

    def work_on() -> None:
        api.files |= {"1-2": part("two\n"), "2-1": part("three\n")}

    def end() -> None:
        api.files["2-2"] = part("four\n")
        api.run = a_run(status="failed")

    steps = iter([work, lambda: None, work_on, end])
    assert written(api, follow=True, sleep=lambda _: next(steps)()) == "one\ntwo\nthree\nfour\n"


def test_a_run_that_ended_without_a_log_says_so(api: FakeApi) -> None:
    api.run = a_run(status="cancelled")
    with pytest.raises(ApiError, match="no logs"):
        written(api, follow=True)


def test_a_run_that_is_not_there_is_no_reason_to_wait(api: FakeApi) -> None:
    api.failures = [(404, {"type": "not_found", "message": "There is no such run."})]
    with pytest.raises(ApiError, match="no such run"):
        written(api, follow=True)
