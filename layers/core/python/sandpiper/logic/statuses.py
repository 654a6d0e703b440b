"""Which status may follow which. Every change of a run names the statuses it starts from; they come from here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sandpiper.models.events import EventType
    from sandpiper.models.run import Status

NEXT: Final[dict[Status, frozenset[Status]]] = {
    "queued": frozenset({"provisioning", "completed", "failed", "cancelled", "timed_out"}),
    "provisioning": frozenset({"running", "queued", "suspended", "completed", "failed", "cancelled", "timed_out"}),
    "running": frozenset({"queued", "suspended", "completed", "failed", "cancelled", "timed_out"}),
    "suspended": frozenset({"queued", "completed", "failed", "cancelled", "timed_out"}),
    "completed": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
    "timed_out": frozenset(),
}
LIVE: Final[tuple[Status, ...]] = tuple(status for status, following in NEXT.items() if following)
EVENT_OF_END: Final[dict[Status, EventType]] = {
    "completed": "run_completed",
    "failed": "run_failed",
    "cancelled": "run_cancelled",
    "timed_out": "run_timed_out",
}


def before(status: Status) -> tuple[Status, ...]:
    """The statuses from which `status` may be reached."""
    return tuple(earlier for earlier, following in NEXT.items() if status in following)
