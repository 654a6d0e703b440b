"""The App that the docs tell people to make is the one that the code needs."""

from __future__ import annotations

import json
from typing import get_args

from sandpiper.logic.github.deliveries import _READERS
from sandpiper.logic.github.permissions import RESOLVE, TALK, permissions_for
from sandpiper.models.spec import TaskType
from tests.infra.sources import ROOT

MANIFEST = json.loads((ROOT / "docs/github-app-manifest.json").read_text())
ALWAYS_SENT = {"installation", "installation_repositories"}
RANK = ("none", "read", "write")


def test_the_app_has_every_right_that_a_token_is_minted_with_and_no_other() -> None:
    needed = {"metadata": "read"}
    for permissions in (TALK, RESOLVE, *map(permissions_for, get_args(TaskType))):
        for name, right in permissions.items():
            needed[name] = max(needed.get(name, "none"), right, key=RANK.index)
    assert MANIFEST["default_permissions"] == needed


def test_the_app_is_sent_the_events_that_are_read_and_no_others() -> None:
    assert set(MANIFEST["default_events"]) == set(_READERS) - ALWAYS_SENT


def test_the_app_calls_the_route_of_the_webhook() -> None:
    assert MANIFEST["hook_attributes"]["url"].endswith("/github/webhook")
