"""What was said about a commit, however much it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.adapters.github.checks import Checks
from sandpiper.adapters.github.client import GitHubClient
from tests.unit.adapters.github.loopback import Loopback, Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMIT = "/repos/o/r/commits/abc"


@pytest.fixture
def checks(github: Loopback) -> Checks:
    return Checks(GitHubClient(github.url, lambda: "tok"), "o/r", "abc")


def two_pages(github: Loopback, what: str, key: str, pages: Sequence[Any]) -> None:
    for number, page in enumerate(pages, 1):
        more = {"Link": f'<{github.url}{COMMIT}/{what}?page={number + 1}>; rel="next"'} if number < len(pages) else {}
        query = "" if number == 1 else f"?page={number}"
        github.reply(f"GET {COMMIT}/{what}{query}", Reply(200, {"total_count": len(pages), key: [page]}, more))


def run(name: str, conclusion: str) -> dict[str, Any]:
    return {"id": 1, "name": name, "status": "completed", "conclusion": conclusion}


def test_a_check_that_is_red_on_the_second_page_is_red(github: Loopback, checks: Checks) -> None:
    two_pages(github, "check-runs", "check_runs", [run("a", "success"), run("b", "failure")])
    status = {"id": 1, "context": "c", "state": "success"}
    two_pages(github, "status", "statuses", [status, status | {"context": "d", "state": "error"}])
    assert [(found.name, found.is_red) for found in checks.runs()] == [
        ("a", False), ("b", True), ("c", False), ("d", True),
    ]  # fmt: skip


def test_a_suite_that_is_open_on_the_second_page_is_open(github: Loopback, checks: Checks) -> None:
    done = {"status": "completed", "latest_check_runs_count": 1}
    two_pages(github, "check-suites", "check_suites", [done, done | {"status": "queued"}])
    assert checks.open_suites() == 1
