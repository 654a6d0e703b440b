"""In-memory stand-ins for every port. One contract suite holds them and the real adapters to the same behaviour."""

from __future__ import annotations

from sandpiper.testing.clock import FakeClock
from sandpiper.testing.quotas import FakeQuotas
from sandpiper.testing.runs import FakeEventLog, FakeRuns
from sandpiper.testing.slots import FakeSlots
from sandpiper.testing.sockets import FakeConnections, FakeSockets
from sandpiper.testing.storage import FakeBlobs, FakeRunSecrets
from sandpiper.testing.workflow import FakeSandboxes, FakeWorkflow

__all__ = [
    "FakeBlobs",
    "FakeClock",
    "FakeConnections",
    "FakeEventLog",
    "FakeQuotas",
    "FakeRunSecrets",
    "FakeRuns",
    "FakeSandboxes",
    "FakeSlots",
    "FakeSockets",
    "FakeWorkflow",
]
