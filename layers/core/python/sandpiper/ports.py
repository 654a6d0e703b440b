"""What the rules need of the world. Adapters implement these; fakes in `testing/` do too.

Types of models are imported for checking only: a function that needs one port pays for no other import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from sandpiper.models.events import Event, EventType, NewEvent
    from sandpiper.models.quota import Account, Quota, Scope
    from sandpiper.models.run import ControlRequest, LastReply, MonthlyUsage, Page, Run, Status


class Clock(Protocol):
    def now(self) -> datetime: ...


@dataclass(frozen=True)
class Revision:
    """What becomes of a run, and the events that tell of it."""

    changes: Mapping[str, Any]
    events: Sequence[NewEvent] = ()


@dataclass(frozen=True)
class Admission:
    """What one more start comes to: the starts that count from now on (None: nobody counts them), and a condition."""

    starts: tuple[datetime, ...] | None
    spent_below: float | None = None


@dataclass(frozen=True)
class RunHead:
    """As much of a run as tells whether anything may still be kept for it."""

    run_id: str
    status: Status
    updated_at: datetime


@dataclass(frozen=True)
class Inventory:
    """What a pass over the store has found. It takes a while: what looks wrong has to be looked at again."""

    runs: Mapping[str, RunHead]
    secrets: frozenset[str]  # runs that have some
    slots: Mapping[Scope, frozenset[str]]  # runs that have one, were called up to one, or wait


class Runs(Protocol):
    """Runs and their event logs: every change of a run and the events it causes are one atomic write.

    The same write keeps the books: a new run, and every change of `usage`, moves the figures of the month of its owner
    and of its organization.
    """

    def create(
        self, run: Run, events: Sequence[NewEvent], *, admit: Callable[[Account], Admission] | None = None
    ) -> Run:
        """Store a new run with its first events. Raises Conflict if the id is taken.

        `admit` is asked about each of the run's scopes, as it is, and again if somebody was faster: what it counts is
        part of the same write. What it raises is raised here, unless the id is taken.
        """

    def get(self, run_id: str) -> Run:
        """Strongly consistent. Raises NotFound."""

    def list_by_owner(
        self, owner: str, *, status: str | None, repo: str | None, limit: int, cursor: str | None
    ) -> Page[Run]:
        """Newest first. Raises BadRequest for a cursor that this store did not make."""

    def append(self, run_id: str, events: Sequence[NewEvent], *, attempt: int | None = None) -> list[Event]:
        """Number and store events. With `attempt`: raises Fenced unless it is the current one and the run is live."""

    def change(
        self,
        run_id: str,
        *,
        allowed: Iterable[Status],
        changes: Mapping[str, Any],
        events: Sequence[NewEvent] = (),
        attempt: int | None = None,
    ) -> Run:
        """Set fields if the status is one of `allowed` (and the attempt is `attempt`). Raises Conflict, Fenced.

        A change that makes the run terminal also frees its owner's slot, in the same transaction.
        """

    def revise(self, run_id: str, decide: Callable[[Run], Revision | None]) -> Run:
        """Change the run as `decide` says, which sees it as it is and is asked again if somebody was faster.

        None changes nothing. What `decide` raises is raised here.
        """

    def events(self, run_id: str, *, after: int, limit: int) -> list[Event]: ...

    def show_words(self, run_id: str, words: Mapping[str, Any], *, attempt: int) -> None:
        """What the model is just saying, for those who follow the run now: no event, and not kept.

        Raises Fenced if a later attempt has spoken.
        """

    def put_reply(self, run_id: str, reply: LastReply, *, attempt: int) -> None:
        """In place of the one before. Nothing of it is left when the run has ended.

        Raises Fenced unless the attempt is the current one and the run is live.
        """

    def last_reply(self, run_id: str) -> LastReply | None:
        """Of whichever attempt. Strongly consistent."""

    def put_control(
        self,
        run_id: str,
        request: Mapping[str, Any],
        *,
        allowed: Iterable[Status] | None = None,
        event: EventType | None = None,
        key: str | None = None,
        changes: Mapping[str, Any] | None = None,
    ) -> ControlRequest:
        """Number and store a request (`action`, `by`, `data`), and an event with `n`, `by` and the data if named.

        `changes` of the run are part of the same write.

        The same `key` stores one request, however often it is sent. Raises NotFound; Conflict if the status is none of
        `allowed`, or if the key was used for something else.
        """

    def controls(self, run_id: str, *, after: int) -> list[ControlRequest]: ...

    def inventory(self) -> Inventory:
        """Everything that is kept about runs, for the sweep that looks for what was lost."""

    def usage_of(self, owner: str, month: str) -> MonthlyUsage:
        """What the owner used in a month (`YYYY-MM`, UTC). Strongly consistent."""


class EventLog(Protocol):
    """The event log for readers that must start fast: plain dicts, no models."""

    def run_head(self, run_id: str) -> dict[str, Any]:
        """`{"owner": …, "last_seq": n, …}`. Strongly consistent. Raises NotFound."""

    def heads(self, owner: str, *, limit: int) -> list[dict[str, Any]]:
        """`{"run_id": …, "status": …, "last_seq": n}` of the owner's newest runs; of those at work as it is now."""

    def read(self, run_id: str, *, after: int, limit: int) -> list[dict[str, Any]]:
        """`{run_id, seq, ts, attempt, type, data}` as the API shows them, in order."""


class QuotaBooks(Protocol):
    """What an admin has set for a user or an organization, and what counts against it."""

    def account(self, scope: Scope, month: str) -> Account:
        """Strongly consistent. Nothing is known of most: that is no error."""

    def limits_of(self, scope: Scope) -> Quota:
        """What an admin has set, alone."""

    def set_limits(self, scope: Scope, limits: Quota) -> None:
        """In place of all that were set before."""


@dataclass(frozen=True)
class Held:
    """The slots of a scope: who has one, and who waits, in order."""

    active: frozenset[str] = frozenset()
    waiting: tuple[str, ...] = ()


class Slots(Protocol):
    """Who may run now, per user and per organization."""

    def acquire(self, scope: Scope, run_id: str, *, since: datetime, limit: int, token: str) -> int:
        """0: the slot is yours. n > 0: you wait at place n and `token` is kept. Safe to repeat.

        Who waits does so in the order of `since`, the time of their start, whenever they come here; then of their ids.
        """

    def held(self, scope: Scope) -> Held: ...

    def release(self, scope: Scope, run_id: str | None, *, limit: int) -> list[tuple[str, str]]:
        """Give back a slot or a place in line; returns (run_id, token) of those whose turn has come.

        Safe to repeat: a run is named until it is dispatched (`Runs.change` to provisioning), so that whoever dies
        before waking it loses nobody. So its token may have been used already (Fenced), and that is no reason to take
        its slot away. Without a run: only look whose turn has come.
        """


class Blobs(Protocol):
    def put(self, key: str, body: bytes, *, content_type: str) -> None: ...

    def put_file(self, key: str, body: BinaryIO, *, content_type: str) -> None: ...

    def get(self, key: str) -> bytes:
        """Raises NotFound."""

    def get_file(self, key: str, file: BinaryIO) -> None:
        """Piece by piece, however large it is. Raises NotFound."""

    def put_stream(self, key: str, pieces: Iterable[bytes], *, content_type: str) -> int:
        """However long it is, it is there whole or not at all; returns its size."""

    def keys(self, prefix: str, *, after: str = "", limit: int) -> list[str]:
        """At most `limit` of the keys that begin so and sort behind `after`, in order."""

    def presign(self, key: str, *, filename: str, seconds: int) -> str: ...

    def folders(self, prefix: str) -> Iterable[str]:
        """The names of the folders right under `prefix`, which ends with a slash."""

    def delete(self, keys: Iterable[str]) -> None:
        """Safe to repeat: what is not there is no error."""

    def delete_prefix(self, prefix: str) -> int:
        """Delete everything whose key begins so; returns how many there were. Safe to repeat."""


class RunSecrets(Protocol):
    """Secrets of one run, encrypted under its id, gone when it ends."""

    def put(self, run_id: str, secrets: Mapping[str, str]) -> None: ...

    def get(self, run_id: str) -> dict[str, str]:
        """Empty if the run was given none, or has ended."""

    def delete(self, run_id: str) -> None: ...


class Workflow(Protocol):
    """The state machine. Execution name = run id, so starting is idempotent."""

    def start(self, run_id: str, payload: Mapping[str, Any]) -> None: ...

    def succeed(self, token: str, output: Mapping[str, Any]) -> None:
        """Raises Fenced if nobody waits on the token any more."""

    def fail(self, token: str, error: str, cause: str) -> None:
        """Raises Fenced, as succeed."""

    def heartbeat(self, token: str) -> None:
        """Raises Fenced, as succeed."""

    def stop(self, run_id: str, cause: str) -> None:
        """Safe to repeat. Raises NotFound if it was never started."""

    def is_running(self, run_id: str) -> bool: ...

    def running(self) -> Mapping[str, datetime]:
        """The names of all executions under way, with their starts. May lag behind by a moment."""


class Sandboxes(Protocol):
    """The containers of a run."""

    def stop_all(self, run_id: str, reason: str) -> int: ...


class Connections(Protocol):
    """Open sockets, what they follow, and the tickets that open them.

    What is followed is a run, or all runs of somebody: `run_id` is then `logic.subscriptions.runs_of(owner)`.
    """

    def issue_ticket(
        self, ticket: str, identity: Mapping[str, Any], *, expires_at: int, now: int | None = None
    ) -> None:
        """With `now` it counts for its user. Raises QuotaExceeded for too many in a minute."""

    def redeem_ticket(self, ticket: str, *, now: int) -> dict[str, Any]:
        """Once only. Raises AuthenticationError."""

    def open(self, connection_id: str, identity: Mapping[str, Any], *, expires_at: int, now: int | None = None) -> None:
        """With `now` it counts for its user until it is closed or expires. Raises QuotaExceeded for too many."""

    def identity(self, connection_id: str) -> dict[str, Any]:
        """Raises NotFound if the connection is not open."""

    def close(self, connection_id: str) -> None:
        """Forget the connection and all that it follows. Safe to repeat."""

    def subscribe(self, connection_id: str, run_id: str) -> None:
        """Safe to repeat. Raises NotFound if the connection is not open."""

    def unsubscribe(self, connection_id: str, run_id: str) -> None: ...

    def subscribers(self, run_id: str) -> list[str]: ...


class Sockets(Protocol):
    def send(self, connection_id: str, frame: bytes) -> None:
        """Raises Gone if nobody is there any more, Stuck, ValueError for a frame over MAX_FRAME_BYTES."""


class Gone(Exception):
    """The connection is closed for good."""


class Stuck(Exception):
    """The connection takes nothing, or too slowly: others would have to wait for it."""
