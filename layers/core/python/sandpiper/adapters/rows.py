"""Rows of the runs and events tables ⇄ the domain. What is nested is kept as JSON, what is queried as attributes."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sandpiper.adapters import keys
from sandpiper.models.run import ControlRequest, Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandpiper.models.events import Event

_NESTED = frozenset({"spec", "result", "error", "budget", "usage", "approval", "intents"})


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def expiry(moment: datetime, days: int) -> int:
    return int((moment + timedelta(days=days)).timestamp())


def run_to_row(run: Run) -> dict[str, Any]:
    """Attributes of a run, without those that only the store knows (version, expires_at)."""
    return {
        "pk": keys.run_pk(run.run_id),
        "sk": keys.RUN,
        "created_key": keys.created_key(run.created_at, run.run_id),
        "repo": run.spec.repo,
        **{name: _to_value(name, getattr(run, name)) for name in Run.model_fields},
    }


def run_from_row(row: Mapping[str, Any]) -> Run:
    known = {name: row[name] for name in Run.model_fields if name in row}
    nested = {name: json.loads(known[name]) for name in _NESTED & known.keys()}
    return Run.model_validate({**known, **nested})


def event_to_row(event: Event, expires_at: int) -> dict[str, Any]:
    return {
        "run_id": event.run_id,
        "seq": event.seq,
        "ts": keys.timestamp(event.ts),
        "attempt": event.attempt,
        "type": event.type,
        "data": json.dumps(event.data, ensure_ascii=False, separators=(",", ":")),
        "expires_at": expires_at,
    }


def control_to_row(run_id: str, control: ControlRequest, expires_at: int) -> dict[str, Any]:
    return {
        "pk": keys.run_pk(run_id),
        "sk": keys.inbox_sk(control.n),
        "request": control.model_dump_json(),
        "expires_at": expires_at,
    }


def control_from_row(row: Mapping[str, Any]) -> ControlRequest:
    return ControlRequest.model_validate_json(row["request"])


def _to_value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "intents":
        return json.dumps({each: intent.model_dump(mode="json") for each, intent in value.items()})
    if name in _NESTED:
        return value.model_dump_json(exclude_none=True)
    return keys.timestamp(value) if isinstance(value, datetime) else value
