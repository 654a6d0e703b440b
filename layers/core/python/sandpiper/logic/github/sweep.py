"""Which deliveries GitHub is asked to send again: it never does so by itself."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sandpiper import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sandpiper.ports import Clock

# What we refused for good: it would be refused again.
_FINAL = frozenset({400, 413})


@dataclass(frozen=True)
class Sweep:
    deliveries: Callable[[int], Iterable[Mapping[str, Any]]]  # the last ones, newest first
    redeliver: Callable[[int], None]
    clock: Clock

    def run(self) -> int:
        """How many are sent again. Raises GitHubError."""
        lost = to_redeliver(self.deliveries(limits.GITHUB_SWEEP_DELIVERIES), self.clock.now())
        for delivery_id in lost:
            self.redeliver(delivery_id)
        return len(lost)


def to_redeliver(deliveries: Iterable[Mapping[str, Any]], now: datetime) -> list[int]:
    """Ids of deliveries, one for each event that never arrived and has not been tried too often."""
    tries: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for delivery in deliveries:
        tries[delivery["guid"]].append(delivery)
    return [each[0]["id"] for each in tries.values() if _is_lost(each, now)]


def _is_lost(tries: list[Mapping[str, Any]], now: datetime) -> bool:
    codes = {delivery["status_code"] for delivery in tries}
    age = now - min(datetime.fromisoformat(delivery["delivered_at"]) for delivery in tries)
    return (
        not any(200 <= code < 300 for code in codes)
        and not codes & _FINAL
        and len(tries) <= limits.GITHUB_REDELIVERIES
        and age < timedelta(seconds=limits.GITHUB_DELIVERY_SECONDS)
    )
