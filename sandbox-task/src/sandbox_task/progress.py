"""What is known of the work so far; a run that ends badly still tells all of it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox_task.checkpoint import Finished, Proof
    from sandbox_task.workspace.repository import Repository
    from sandpiper.models.run import (
        CiOutcome,
        CommitInfo,
        Finding,
        GateReport,
        PullRequestInfo,
        StoryOutcome,
        SuiteResult,
    )


@dataclass
class Progress:
    repository: Repository | None = None
    tree: str | None = None
    summary: str = ""
    repairs: int = 0
    at_work: bool = False  # the agent is, so the files may have moved on from the tree
    finished: Finished | None = None
    proof: Proof | None = None
    gate: GateReport | None = None
    story: StoryOutcome | None = None
    findings: tuple[Finding, ...] = ()
    suites: tuple[SuiteResult, ...] = ()
    commit: CommitInfo | None = None
    pull_request: PullRequestInfo | None = None
    ci: CiOutcome | None = None
    ci_rounds: int = 0
    awaits_ci: bool = False
    ci_red: str | None = None  # the commit that CI was red about
    durations_ms: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            spent = round((time.monotonic() - started) * 1000)
            self.durations_ms[name] = self.durations_ms.get(name, 0) + spent
