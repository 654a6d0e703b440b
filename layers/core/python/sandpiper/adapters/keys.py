"""Names of rows in the runs table. Everything that reads or writes one takes its key from here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandpiper.models.quota import Scope

RUN = "RUN"
SECRETS = "SECRETS"
REPLY = "REPLY"
SLOTS = "SLOTS"
INBOX = "INBOX#"
WAIT = "WAIT#"
CALLED = "CALLED#"
INBOX_KEY = "KEY#"
LIMITS = "LIMITS"
STARTS = "STARTS"
OWNER_INDEX = "by_owner"
SLOTS_OF = {"user": "OWNER#", "org": "ORG#"}
_USAGE_OF = {"user": "USAGE#", "org": "ORGUSAGE#"}
_HIGHEST = 10**10 - 1


def run_pk(run_id: str) -> str:
    return f"RUN#{run_id}"


def run_of(pk: str) -> str:
    return pk.removeprefix("RUN#")


def run_key(run_id: str) -> dict[str, str]:
    return {"pk": run_pk(run_id), "sk": RUN}


def reply_key(run_id: str) -> dict[str, str]:
    return {"pk": run_pk(run_id), "sk": REPLY}


def slots_pk(scope: Scope) -> str:
    return f"{SLOTS_OF[scope.kind]}{scope.name}"


def usage_key(scope: Scope, month: str) -> dict[str, str]:
    """Apart from the slots, which are read all at once."""
    return {"pk": f"{_USAGE_OF[scope.kind]}{scope.name}", "sk": f"MONTH#{month}"}


def quota_pk(scope: Scope) -> str:
    return f"QUOTA#{scope.kind}#{scope.name}"


def limits_key(scope: Scope) -> dict[str, str]:
    return {"pk": quota_pk(scope), "sk": LIMITS}


def topic_key(place: str, number: int) -> dict[str, str]:
    """Of an issue or a pull request."""
    return {"pk": f"GITHUB#{place}#{number}", "sk": "LATEST"}


def month_of(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m")


def watch_key(place: str, sha: str) -> dict[str, str]:
    """Of a commit that a run waits for CI on."""
    return {"pk": f"ci#{place}#{sha}", "sk": "CI"}


def inbox_sk(n: int) -> str:
    return f"{INBOX}{n:010}"


def wait_sk(since: datetime, run_id: str) -> str:
    return f"{WAIT}{created_key(since, run_id)}"


LAST_INBOX = inbox_sk(_HIGHEST)


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC and of one length, so that it sorts as text."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def created_key(created_at: datetime, run_id: str) -> str:
    return f"{timestamp(created_at)}#{run_id}"
