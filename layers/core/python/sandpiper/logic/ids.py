"""Run ids: `run-` and a ULID in lower case, or, for an Idempotency-Key, 128 bits of a hash in the same form."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH = 26
RUN_ID = re.compile(rf"run-[{_CROCKFORD}]{{{_LENGTH}}}")


def new_run_id(now: datetime) -> str:
    milliseconds = int(now.timestamp() * 1000)
    return _run_id((milliseconds << 80) | secrets.randbits(80))


def run_id_for_key(owner: str, key: str, *, retry: int = 0) -> str:
    """The same id for the same owner and key, so that a repeated start can never make a second execution."""
    parts = (owner, key, str(retry))
    digest = hashlib.sha256(b"".join(len(part.encode()).to_bytes(4) + part.encode() for part in parts)).digest()
    return _run_id(int.from_bytes(digest[:16]))


def _run_id(number: int) -> str:
    return "run-" + "".join(_CROCKFORD[(number >> 5 * place) & 31] for place in reversed(range(_LENGTH)))
