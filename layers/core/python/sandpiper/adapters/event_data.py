"""Keeps events small: data that is too big for the log goes to the blobs, a preview stays."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from sandpiper import limits

if TYPE_CHECKING:
    from sandpiper.models.events import NewEvent
    from sandpiper.ports import Blobs


def shrink(event: NewEvent, run_id: str, blobs: Blobs) -> NewEvent:
    """The event as the log keeps it."""
    # Output of commands may hold half characters, which are no UTF-8 and which no store takes.
    encoded = json.dumps(event.data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    if len(encoded) <= limits.INLINE_EVENT_BYTES:
        return event.model_copy(update={"data": json.loads(encoded)})
    key = f"runs/{run_id}/data/{uuid.uuid4()}.json"
    blobs.put(key, encoded, content_type="application/json")
    return event.model_copy(update={"data": _preview(encoded, key)})


def _preview(encoded: bytes, key: str) -> dict[str, Any]:
    preview = encoded.decode()[: limits.PREVIEW_CHARS]
    return {"preview": preview, "truncated": True, "data_key": key, "size": len(encoded)}
