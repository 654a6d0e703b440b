"""What the rules need of the world. Adapters implement these; fakes in `testing/` do too.

Types of models are imported for checking only: a function that needs one port pays for no other import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from sandpiper.logic.github.conversation import Entry
    from sandpiper.logic.github.deliveries import Delivery
    from sandpiper.models.events import Event, EventType, NewEvent
    from sandpiper.models.github import GitHubOrigin, RepositoryToken, Topic
    from sandpiper.models.run import ControlRequest, MonthlyUsage, Page, Run, Status


class Clock(Protocol):
    def now(self) -> datetime: ...


@dataclass(frozen=True)
class Revision:
    """What becomes of a run, and the events that tell of it."""

    changes: Mapping[str, Any]
    events: Sequence[NewEvent] = ()


@dataclass(frozen=True)
class Held:
    """`again`: somebody has had it before, and may have got anywhere with it."""

    again: bool


class Runs(Protocol):
    """Runs and their event logs: every change of a run and the events it causes are one atomic write.

    The same write keeps the books: a new run, and every change of `usage`, moves its owner's figures of the month.
    """

    def create(self, run: Run, events: Sequence[NewEvent]) -> Run:
        """Store a new run with its first events. Raises Conflict if the id is taken."""

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

    def live(self, *, unchanged_since: datetime) -> Iterable[Run]:
        """Every run that has not ended and was last changed before then, for the sweep that looks for lost ones."""

    def usage_of(self, owner: str, month: str) -> MonthlyUsage:
        """What the owner used in a month (`YYYY-MM`, UTC). Strongly consistent."""


class EventLog(Protocol):
    """The event log for readers that must start fast: plain dicts, no models."""

    def run_head(self, run_id: str) -> dict[str, Any]:
        """`{"owner": …, "last_seq": n, …}`. Strongly consistent. Raises NotFound."""

    def read(self, run_id: str, *, after: int, limit: int) -> list[dict[str, Any]]:
        """`{run_id, seq, ts, attempt, type, data}` as the API shows them, in order."""


class Slots(Protocol):
    """Who may run now, per owner, first come first served."""

    def acquire(self, owner: str, run_id: str, *, limit: int, token: str) -> int:
        """0: the slot is yours. n > 0: you wait at place n and `token` is kept. Safe to repeat."""

    def release(self, owner: str, run_id: str, *, limit: int) -> list[tuple[str, str]]:
        """Give back a slot or a place in line; returns (run_id, token) of those whose turn has come.

        Safe to repeat: a run is named until it is dispatched (`Runs.change` to provisioning), so that whoever dies
        before waking it loses nobody. So its token may have been used already (Fenced), and that is no reason to take
        its slot away.
        """


class Blobs(Protocol):
    def put(self, key: str, body: bytes, *, content_type: str) -> None: ...

    def put_file(self, key: str, body: BinaryIO, *, content_type: str) -> None: ...

    def put_stream(self, key: str, body: BinaryIO, *, content_type: str) -> None:
        """Of a size that nobody knows yet, piece by piece. Nothing is stored if reading raises, and that is raised."""

    def get(self, key: str) -> bytes:
        """Raises NotFound."""

    def get_file(self, key: str, file: BinaryIO) -> None:
        """Piece by piece, however large it is. Raises NotFound."""

    def presign(self, key: str, *, filename: str, seconds: int) -> str: ...

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


class RepositoryTokens(Protocol):
    """Minted by the one function that holds the App's key, for the run's own repository and no more than it needs."""

    def token(self, run_id: str, attempt: int) -> RepositoryToken | None:
        """None: the run was not asked for on GitHub. Raises Fenced if the attempt is not the current one."""


class HeadWatch(Protocol):
    """Notes which run waits for what CI says about a commit; `Topics.watcher` reads it."""

    def watch(self, repository: str, sha: str, run_id: str) -> None:
        """`repository` is owner/name. Safe to repeat."""


class Hub(Protocol):
    """One repository on GitHub, as the App sees it. Everything raises GitHubError."""

    def may_write(self, login: str) -> bool: ...

    def topic(self, number: int, *, is_pull: bool) -> Topic: ...

    def said_on(self, topic: Topic, *, without: int | None = None) -> list[Entry]:
        """The last comments and, of a pull request, review comments, oldest first; none of ours and not `without`."""

    def react(self, target: GitHubOrigin | Delivery, content: str) -> None:
        """To the comment, or to the issue where that has no reactions. Safe to repeat."""

    def comment(self, number: int, body: str) -> int:
        """Its id. Not safe to repeat: see `find_comment`."""

    def edit_comment(self, comment_id: int, body: str) -> None: ...

    def find_comment(self, number: int, marker: str) -> int | None: ...

    def checks_are_complete(self, sha: str) -> bool: ...


class Topics(Protocol):
    """Which run an issue or a pull request is about: the last one that was asked for there."""

    def note(self, run: Run) -> None:
        """Safe to repeat; a later run is not replaced by an earlier one."""

    def latest(self, repository: str, number: int) -> str | None: ...

    def watcher(self, repository: str, sha: str) -> str | None:
        """The run that waits for what CI says of a commit, which may have ended meanwhile."""


class Holds(Protocol):
    """Who works on something that is to be done once, for a while."""

    def take(self, name: str, *, seconds: int) -> Held | None:
        """None: somebody else has it, or it is done."""

    def release(self, name: str, *, done: bool) -> None:
        """What is not done may be taken again at once."""


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


class Sandboxes(Protocol):
    """The containers of a run."""

    def stop_all(self, run_id: str, reason: str) -> int: ...


class Connections(Protocol):
    """Open sockets, what they follow, and the tickets that open them."""

    def issue_ticket(self, ticket: str, identity: Mapping[str, Any], *, expires_at: int) -> None: ...

    def redeem_ticket(self, ticket: str, *, now: int) -> dict[str, Any]:
        """Once only. Raises AuthenticationError."""

    def open(self, connection_id: str, identity: Mapping[str, Any], *, expires_at: int) -> None: ...

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
        """Raises Gone if nobody is there any more, ValueError for a frame over MAX_FRAME_BYTES."""


class Gone(Exception):
    """The connection is closed for good."""
