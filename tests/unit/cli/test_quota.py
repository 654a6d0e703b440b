from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from sandpiper_cli.main import app
from tests.unit.cli.fake_api import TOKEN, FakeApi

if TYPE_CHECKING:
    from typer.testing import Result

SHOWN = ["Starts in 24 hours  25 of 25 used, again at 2026-11-19T06:00:00Z", "Dollars this month  12.50 of 100.00 used"]


def sandpiper(api: FakeApi, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--endpoint", api.url, "--token", TOKEN])


def test_usage_shows_what_is_left_of_the_quotas(api: FakeApi) -> None:
    assert sandpiper(api, "usage").stdout.splitlines()[-3:] == ["Quota ann", *SHOWN]


def test_quotas_of_an_organization_are_shown(api: FakeApi) -> None:
    assert sandpiper(api, "quota", "--org", "acme").stdout.splitlines() == ["Quota of the organization acme", *SHOWN]


def test_limits_are_set_all_at_once(api: FakeApi) -> None:
    words = ["--user", "github:octo", "--set", "concurrency=5", "--set", "monthly_usd=2.5"]
    assert sandpiper(api, "quota", *words).exit_code == 0
    assert api.bodies("/quotas/users/github:octo") == [{"concurrency": 5, "monthly_usd": 2.5}]


@pytest.mark.parametrize("words", [[], ["--user", "a", "--org", "b"], ["--user", "a", "--set", "concurrency=many"]])
def test_what_can_not_be_meant_is_a_mistake_of_usage(api: FakeApi, words: list[str]) -> None:
    assert sandpiper(api, "quota", *words).exit_code == 2
    assert api.requests == []
