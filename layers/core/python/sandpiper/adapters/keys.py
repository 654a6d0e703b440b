"""Names of rows in the runs table. Everything that reads or writes one takes its key from here."""

from __future__ import annotations

from datetime import UTC, datetime

RUN = "RUN"
SECRETS = "SECRETS"
SLOTS = "SLOTS"
INBOX = "INBOX#"
WAIT = "WAIT#"
CALLED = "CALLED#"
OWNER_INDEX = "by_owner"
_HIGHEST = 10**10 - 1


def run_pk(run_id: str) -> str:
    return f"RUN#{run_id}"


def owner_pk(owner: str) -> str:
    return f"OWNER#{owner}"


def inbox_sk(n: int) -> str:
    return f"{INBOX}{n:010}"


def wait_sk(ticket: int) -> str:
    return f"{WAIT}{ticket:010}"


LAST_INBOX = inbox_sk(_HIGHEST)


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC and of one length, so that it sorts as text."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def created_key(created_at: datetime, run_id: str) -> str:
    return f"{timestamp(created_at)}#{run_id}"
