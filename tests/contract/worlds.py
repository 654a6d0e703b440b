"""Where the real adapters of the contract suite live, and what a store of runs consists of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from sandpiper.adapters import aws
from sandpiper.adapters.blobs import S3Blobs
from sandpiper.adapters.runs import DynamoRuns

if TYPE_CHECKING:
    from sandpiper.ports import Blobs, Runs, Slots
    from sandpiper.testing.fakes import FakeClock

RETENTION_DAYS = 7


@dataclass(frozen=True)
class Aws:
    """An embedded AWS with what the adapters need; every test makes its own names in it."""

    endpoint: str
    runs_table: str = "runs"
    events_table: str = "events"
    connections_table: str = "connections"
    idempotency_table: str = "idempotency"
    bucket: str = "artifacts"

    def client(self, service: str, *, endpoint_url: str | None = None) -> Any:
        """As the product makes it; what it finds in its environment is there only for that moment."""
        make: Any = aws.client
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
            environment.setenv("AWS_ACCESS_KEY_ID", "test")
            environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
            return make(service, endpoint_url=endpoint_url or self.endpoint)

    def blobs(self) -> S3Blobs:
        return S3Blobs(self.client("s3"), bucket=self.bucket)

    def runs(self, clock: FakeClock) -> DynamoRuns:
        return DynamoRuns(
            self.client("dynamodb"),
            runs_table=self.runs_table,
            events_table=self.events_table,
            blobs=self.blobs(),
            clock=clock,
            retention_days=RETENTION_DAYS,
        )


@dataclass(frozen=True)
class Store:
    """Runs and what they share: ending a run frees a slot, big events go to the blobs."""

    runs: Runs
    slots: Slots
    blobs: Blobs
    clock: FakeClock
