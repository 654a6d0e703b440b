"""A run and its result: the domain, without a word about how it is stored or served."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from sandpiper.models.base import Model
from sandpiper.models.quota import Scope, ScopeKind
from sandpiper.models.spec import GateMode, RunSpec

Status = Literal[
    "queued", "provisioning", "running", "suspended", "completed", "failed", "cancelled", "timed_out",
]  # fmt: skip
SuspendReason = Literal["paused", "awaiting_approval", "awaiting_input", "awaiting_ci", "budget_exhausted"]
GateStatus = Literal["passed", "failed", "skipped"]
RiskLevel = Literal["low", "medium", "high"]
CheckStatus = Literal["passed", "failed", "known_broken"]
Severity = Literal["critical", "major", "minor", "info"]
CiOutcome = Literal["passed", "failed", "none"]  # none: the repository has none
LimitName = Literal["max_turns", "max_cost_usd", "max_total_tokens", "timeout_seconds"]
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

    def plus(self, other: "Usage") -> "Usage":
        sums = {name: getattr(self, name) + getattr(other, name) for name in Usage.model_fields}
        return Usage(**{**sums, "cost_usd": round(sums["cost_usd"], 8)})

    def at_least(self, other: "Usage") -> "Usage":
        """Of two that tell of the same run, what either of them knows."""
        return Usage(**{name: max(getattr(self, name), getattr(other, name)) for name in Usage.model_fields})

    @property
    def total_tokens(self) -> int:
        """In and out, from the cache or not: what `max_total_tokens` bounds."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


class MonthlyUsage(Usage):
    """What all runs of one owner used in one month (`YYYY-MM`, UTC), and how many were started in it."""

    month: str
    runs: int = 0


class ReportedTests(Model):
    """What a test runner reported, read from its own report where it gives one. Failing tests are named."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failing: tuple[str, ...] = ()


class CheckResult(Model):
    name: str = ""
    command: str
    status: CheckStatus
    exit_code: int | None = None
    timed_out: bool = False
    duration_ms: int = 0
    output_tail: str = ""
    tests: ReportedTests | None = None
    newly_failing: tuple[str, ...] = ()  # tests that fail now and did not before


class GateReport(Model):
    status: GateStatus
    summary: str
    mode: GateMode = "regression"
    checks: tuple[CheckResult, ...] = ()


class SuiteResult(Model):
    """One test suite that a `test-suite` run has run itself; nothing here is the model's word."""

    name: str
    command: str
    status: Literal["passed", "failed", "timed_out"]
    exit_code: int | None = None
    duration_ms: int = 0
    tests: ReportedTests | None = None
    output_tail: str = ""


class Finding(Model):
    """One remark of a `code-review`."""

    file: str
    line: int | None = None
    severity: Severity
    message: str
    suggestion: str | None = None


class StoryOutcome(Model):
    """The story of the PRD that the run was about."""

    file: str
    id: str
    title: str
    verdict: Literal["PASSED", "FAILED", "UNVERIFIED"]


class Plan(Model):
    """What the agent means to do. Typed fields, so that nothing has to be read out of prose."""

    summary: str = ""
    steps: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    validation_commands: tuple[str, ...] = ()

    def as_text(self) -> str:
        lists = ((name, getattr(self, name)) for name in ("steps", "files", "risks", "validation_commands"))
        lines = [
            f"{name.replace('_', ' ')}:\n" + "\n".join(f"- {item}" for item in items) for name, items in lists if items
        ]
        return "\n".join(filter(None, (self.summary, *lines)))


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


class Budget(Model):
    """Limits of a run. On the run: those that were raised after its start, and what is None is as the spec has it."""

    max_turns: int | None = None
    max_cost_usd: float | None = None
    max_total_tokens: int | None = None
    timeout_seconds: int | None = None
    month_usd: float | None = None  # what the month's quota leaves to all of the run; lowers max_cost_usd


class ApprovalRequest(Model):
    """What a person is asked before a call is made. `kind` is what "approve for the rest of the run" is about."""

    id: str
    tool: str
    shown: dict[str, Any] = Field(default_factory=dict)  # the command, the code, the path
    reason: str
    risk: RiskLevel
    kind: str
    requested_at: datetime


class Intent(Model):
    """Something that is done once outside of us: a push, a pull request, a review. No result: it may have been done."""

    at: datetime
    result: dict[str, Any] | None = None


class PullRequestInfo(Model):
    number: int
    url: str
    draft: bool = False


class RunResult(Model):
    """What a sandbox hands back. Everything large is in S3 and named by key."""

    outcome: Literal["completed", "failed", "cancelled", "timed_out", "suspended"]
    summary: str = ""
    error: ErrorInfo | None = None
    suspend_reason: SuspendReason | None = None
    plan: Plan | None = None
    gate: GateReport | None = None
    commit: CommitInfo | None = None
    pull_request: PullRequestInfo | None = None
    ci: CiOutcome | None = None  # of the repository's own CI, if the run was to follow it
    diff_stat: DiffStat | None = None
    diff_key: str | None = None
    log_key: str | None = None
    story: StoryOutcome | None = None
    findings: tuple[Finding, ...] = ()
    suites: tuple[SuiteResult, ...] = ()
    question: str | None = None  # what a run that waits for an answer has asked
    approval: ApprovalRequest | None = None  # what a run that waits for an approval wants to do
    exhausted: LimitName | None = None  # the limit that stopped a run with `budget_exhausted`
    limits: Budget | None = None  # all that were in force when it stopped
    inbox_seen: int = 0  # the last request of the inbox that the sandbox had taken in when it stopped
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
    losses: int = 0  # attempts that were lost; a resumed run has more attempts and no more losses
    token_seconds: int | None = None  # how long the state machine waits for the current attempt, at most
    checkpoint_key: str | None = None  # where the next attempt goes on
    checkpoint_turn: int | None = None  # how many turns of the model it holds
    budget: Budget = Field(default_factory=Budget)
    usage: Usage = Field(default_factory=Usage)  # of all attempts so far
    last_seq: int = 0
    last_inbox: int = 0
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    queue_position: int | None = None  # 1 is next
    queue_line: ScopeKind | None = None  # whose slots it waits for
    estimated_wait_seconds: int | None = None
    cancel_requested: bool = False
    resume_token: str | None = None  # of the callback that the state machine waits on while suspended
    task_arn: str | None = None
    approval: ApprovalRequest | None = None  # asked and not answered yet, in a sandbox that waits or without one
    status_comment_id: int | None = None  # on GitHub; written once
    intents: dict[str, Intent] = Field(default_factory=dict)  # by name; see sandbox_task/intents.py
    result: RunResult | None = None
    error: ErrorInfo | None = None

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Whose quotas it counts for, in the order in which it waits for their slots."""
        return (Scope("user", self.owner), *([Scope("org", self.org)] if self.org else []))


class LastReply(Model):
    """What the model said last, stored beside the run before the next state of it is.

    `after` is the key of the state that it is the next step of: beside any other it means nothing.
    """

    after: str
    usage: Usage  # of the whole run, with this reply
    step: str  # as the sandbox writes it, redacted


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
