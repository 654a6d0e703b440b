"""The environment of the websocket function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Settings:
    runs_table: str
    events_table: str
    connections_table: str
    artifacts_bucket: str
    management_url: str
    monthly_usd: float  # of a user, by default

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        return cls(
            runs_table=environment["RUNS_TABLE"],
            events_table=environment["EVENTS_TABLE"],
            connections_table=environment["CONNECTIONS_TABLE"],
            artifacts_bucket=environment["ARTIFACTS_BUCKET"],
            management_url=environment["WEBSOCKET_MANAGEMENT_URL"],
            monthly_usd=float(environment["MONTHLY_USD"]),
        )
