"""Where a listing goes on: opaque to callers, bound to one owner, refused unless we could have made it."""

from __future__ import annotations

import base64
import binascii
import json
import re

from sandpiper.errors import BadRequest

_CREATED_KEY = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z#[A-Za-z0-9_-]{1,80}")


def encode(owner: str, created_key: str) -> str:
    text = json.dumps([owner, created_key], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(cursor: str, owner: str) -> str:
    """The key of the last row that was shown. Raises BadRequest."""
    created_key = _created_key(cursor)
    # Making it again and comparing leaves no second spelling of a cursor, and no cursor of somebody else.
    if not _CREATED_KEY.fullmatch(created_key) or encode(owner, created_key) != cursor:
        raise BadRequest("The cursor is not one of ours. Start the list again without it.")
    return created_key


def _created_key(cursor: str) -> str:
    try:
        decoded = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return ""
    match decoded:
        case [str(), str() as created_key]:
            return created_key
    return ""
