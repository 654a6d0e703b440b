"""What a command printed, whatever ran in it: each runner that it shows the totals of is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox_task.gate.reports.cargo import cargo_text
from sandbox_task.gate.reports.common import merged
from sandbox_task.gate.reports.go import go_text
from sandbox_task.gate.reports.jest import jest_text, vitest_text
from sandbox_task.gate.reports.python import pytest_text, unittest_text
from sandbox_task.gate.reports.tap import mocha_text, node_text, tap

if TYPE_CHECKING:
    from sandpiper.models.run import ReportedTests

_READERS = (pytest_text, unittest_text, cargo_text, go_text, jest_text, vitest_text, mocha_text, node_text, tap)


def recognise(text: str) -> ReportedTests | None:
    return merged(tests for read in _READERS if (tests := read(text)) is not None)
