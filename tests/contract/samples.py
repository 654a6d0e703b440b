"""Runs and events to test with."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sandpiper.models.events import NewEvent
from sandpiper.models.run import Run
from sandpiper.models.spec import RunSpec

if TYPE_CHECKING:
    from sandpiper.ports import Clock

STARTED = datetime(2026, 1, 1, 12, tzinfo=UTC)


def new_run_id() -> str:
    return f"run-{uuid.uuid4().hex[:26]}"


def a_run(owner: str, clock: Clock, **changes: Any) -> Run:
    now = clock.now()
    values = {
        "run_id": new_run_id(),
        "owner": owner,
        "spec": RunSpec(task="Add a page", repo="octo/site", paths=("src",), max_cost_usd=1.25),
        "created_at": now,
        "updated_at": now,
    }
    return Run.model_validate(values | changes)


def outputs(*texts: str) -> list[NewEvent]:
    return [NewEvent(type="tool_output", data={"text": text}) for text in texts]
