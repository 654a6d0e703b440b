"""What a user may do by default, for every function that starts runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper.models.quota import Quota

if TYPE_CHECKING:
    from collections.abc import Mapping


def quota_of(environment: Mapping[str, str]) -> Quota:
    return Quota(
        starts_per_minute=int(environment["STARTS_PER_MINUTE"]),
        starts_per_day=int(environment["STARTS_PER_DAY"]),
        monthly_usd=float(environment["MONTHLY_USD"]),
        concurrency=int(environment["CONCURRENCY"]),
    )
