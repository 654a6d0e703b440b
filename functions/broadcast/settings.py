"""The environment of the broadcast function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Settings:
    runs_table: str
    connections_table: str
    management_url: str

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        return cls(
            runs_table=environment["RUNS_TABLE"],
            connections_table=environment["CONNECTIONS_TABLE"],
            management_url=environment["WEBSOCKET_MANAGEMENT_URL"],
        )
