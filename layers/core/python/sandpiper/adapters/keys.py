"""Names of rows in the runs table. Everything that reads or writes one takes its key from here."""

from __future__ import annotations

from datetime import UTC, datetime

RUN = "RUN"
SECRETS = "SECRETS"
SLOTS = "SLOTS"
INBOX = "INBOX#"
WAIT = "WAIT#"
CALLED = "CALLED#"
INBOX_KEY = "KEY#"
OWNER_INDEX = "by_owner"
_HIGHEST = 10**10 - 1


def run_pk(run_id: str) -> str:
    return f"RUN#{run_id}"


def run_key(run_id: str) -> dict[str, str]:
    return {"pk": run_pk(run_id), "sk": RUN}


def owner_pk(owner: str) -> str:
    return f"OWNER#{owner}"


def usage_key(owner: str, month: str) -> dict[str, str]:
    """Apart from the owner's slots, which are read all at once."""
    return {"pk": f"USAGE#{owner}", "sk": f"MONTH#{month}"}


def topic_key(repository: str, number: int) -> dict[str, str]:
    """Of an issue or a pull request. Names of repositories are the same in capitals."""
    return {"pk": f"GITHUB#{repository.lower()}#{number}", "sk": "LATEST"}


def watch_key(repository: str, sha: str) -> dict[str, str]:
    """Of a commit that a run waits for CI on."""
    return {"pk": f"ci#{repository.lower()}#{sha}", "sk": "CI"}


def month_of(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m")


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
