from __future__ import annotations

from typing import get_args

import pytest

from sandpiper.logic import statuses
from sandpiper.models.run import TERMINAL, Status


def test_every_status_is_in_the_table() -> None:
    assert set(statuses.NEXT) == set(get_args(Status))


def test_terminal_statuses_are_final_and_every_other_is_live() -> None:
    assert set(statuses.LIVE) == set(get_args(Status)) - TERMINAL


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_every_live_status_can_end_in_every_way(status: Status) -> None:
    assert set(statuses.before(status)) == set(statuses.LIVE)


def test_every_end_has_its_event() -> None:
    assert set(statuses.EVENT_OF_END) == TERMINAL


def test_a_sandbox_that_is_not_provisioned_cannot_run() -> None:
    assert statuses.before("running") == ("provisioning",)
