"""GitHub's webhooks as its own examples have them, changed only where a test says so."""

from __future__ import annotations

import copy
import functools
import json
from pathlib import Path
from typing import Any

_FIXTURES = Path(__file__).parents[3] / "fixtures/github"


@functools.cache
def _read(name: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads((_FIXTURES / f"{name}.json").read_text())
    return parsed


def payload(name: str, **installation: int) -> dict[str, Any]:
    """As the App gets it: some of the examples were sent by a hook of a repository."""
    return {**copy.deepcopy(_read(name)), "installation": {"id": 42, **installation}}


def comment(body: str, login: str = "ann") -> dict[str, Any]:
    made = payload("issue_comment.created")
    made["comment"] |= {"body": body, "performed_via_github_app": None}
    made["comment"]["user"] |= {"login": login, "type": "User"}
    return made
