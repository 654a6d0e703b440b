"""A run and its result: the domain, without a word about how it is stored or served."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from sandpiper.models.base import Model
from sandpiper.models.spec import RunSpec

Status = Literal[
    "queued", "provisioning", "running", "suspended", "completed", "failed", "cancelled", "timed_out",
]  # fmt: skip
SuspendReason = Literal["paused", "awaiting_approval", "awaiting_input", "budget_exhausted"]
GateStatus = Literal["passed", "failed", "skipped"]
CheckStatus = Literal["passed", "failed", "known_broken"]
TERMINAL: frozenset[str] = frozenset({"completed", "failed", "cancelled", "timed_out"})


class ErrorInfo(Model):
    """Why something failed, in words; the same shape in a run and in an HTTP answer."""

    type: str
    message: str
    retryable: bool = False


class Usage(Model):
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0


class CheckResult(Model):
    command: str
    status: CheckStatus
    exit_code: int | None = None
    duration_ms: int = 0
    output_tail: str = ""


class GateReport(Model):
    status: GateStatus
    summary: str
    checks: tuple[CheckResult, ...] = ()


class Plan(Model):
    """What the agent means to do. Typed fields, so that nothing has to be read out of prose."""

    summary: str = ""
    steps: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    validation_commands: tuple[str, ...] = ()


class DiffStat(Model):
    files: int = 0
    insertions: int = 0
    deletions: int = 0


class CommitInfo(Model):
    sha: str
    branch: str
    message: str
    pushed: bool = False
    verified: bool = False
    url: str | None = None


class RunResult(Model):
    """What a sandbox hands back. Everything large is in S3 and named by key."""

    outcome: Literal["completed", "failed", "cancelled", "timed_out", "suspended"]
    summary: str = ""
    error: ErrorInfo | None = None
    suspend_reason: SuspendReason | None = None
    plan: Plan | None = None
    gate: GateReport | None = None
    commit: CommitInfo | None = None
    diff_stat: DiffStat | None = None
    diff_key: str | None = None
    log_key: str | None = None
    usage: Usage = Field(default_factory=Usage)
    durations_ms: dict[str, int] = Field(default_factory=dict)
    model: str | None = None


class Run(Model):
    """One task in progress or done. `attempt` fences its sandboxes, `last_seq` numbers its events."""

    run_id: str
    owner: str
    org: str | None = None
    status: Status = "queued"
    suspend_reason: SuspendReason | None = None
    spec: RunSpec
    attempt: int = 0
    last_seq: int = 0
    last_inbox: int = 0
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    queue_position: int | None = None
    cancel_requested: bool = False
    resume_token: str | None = None  # of the callback that the state machine waits on while suspended
    task_arn: str | None = None
    result: RunResult | None = None
    error: ErrorInfo | None = None

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL


class ControlRequest(Model):
    """A person's wish for a running run: one row of its inbox."""

    n: int
    action: Literal["cancel", "pause", "resume", "message", "approve", "reject", "budget"]
    by: str
    at: datetime
    data: dict[str, Any] = Field(default_factory=dict)


class Page[T](Model):
    items: tuple[T, ...]
    cursor: str | None = None
