"""Which deliveries GitHub is asked to send again: it never does so by itself."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sandpiper import limits
from sandpiper.errors import GitHubError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sandpiper.ports import Clock

# What we refused for good: it would be refused again.
_FINAL = frozenset({400, 413})


@dataclass(frozen=True)
class Swept:
    redelivered: int
    refused: int


@dataclass(frozen=True)
class Sweep:
    deliveries: Callable[[int], Iterable[Mapping[str, Any]]]  # the last ones, newest first
    redeliver: Callable[[int], None]
    clock: Clock

    def run(self) -> Swept:
        """What GitHub will not send again holds up nothing else. Raises GitHubError if it is away."""
        lost = to_redeliver(self.deliveries(limits.GITHUB_SWEEP_DELIVERIES), self.clock.now())
        refused = sum(not self._sent_again(delivery_id) for delivery_id in lost)
        return Swept(len(lost) - refused, refused)

    def _sent_again(self, delivery_id: int) -> bool:
        try:
            self.redeliver(delivery_id)
        except GitHubError as error:
            if error.retryable:
                raise
            return False
        return True


def to_redeliver(deliveries: Iterable[Mapping[str, Any]], now: datetime) -> list[int]:
    """Ids of deliveries, one for each event that never arrived and has not been tried too often."""
    tries: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for delivery in deliveries:
        tries[delivery["guid"]].append(delivery)
    return [each[0]["id"] for each in tries.values() if _is_lost(each, now)]


def _is_lost(tries: list[Mapping[str, Any]], now: datetime) -> bool:
    codes = {delivery["status_code"] for delivery in tries}
    moments = [datetime.fromisoformat(delivery["delivered_at"]) for delivery in tries]
    return (
        not any(200 <= code < 300 for code in codes)
        and not codes & _FINAL
        and len(tries) <= limits.GITHUB_REDELIVERIES
        and now - min(moments) < timedelta(seconds=limits.GITHUB_DELIVERY_SECONDS)
        and now - max(moments) >= _pause_after(len(tries))
    )


def _pause_after(tries: int) -> timedelta:
    """None, half an hour, two hours …: we may be away for longer than a moment, and it is a day in all."""
    return timedelta(seconds=limits.GITHUB_SWEEP_SECONDS * (3 ** (tries - 1) - 1))
