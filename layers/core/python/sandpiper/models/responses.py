"""The bodies of our answers. Keys of the store stay inside: what can be downloaded is named by route."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sandpiper.models.events import EventType
from sandpiper.models.quota import LimitUse, ScopeKind
from sandpiper.models.run import (
    ApprovalRequest,
    CiOutcome,
    CommitInfo,
    DiffStat,
    ErrorInfo,
    Finding,
    GateReport,
    LimitName,
    Plan,
    PullRequestInfo,
    Status,
    StoryOutcome,
    SuiteResult,
    SuspendReason,
    Usage,
)
from sandpiper.models.spec import TaskType


class ResponseModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class FieldError(ResponseModel):
    field: str
    message: str
    scope: Annotated[ScopeKind | None, Field(description="of a quota: whose it is")] = None
    limit: float | None = None
    used: float | None = None
    opens_at: Annotated[datetime | None, Field(description="of a quota: when there is some of it again")] = None


class ErrorBody(ResponseModel):
    type: str
    message: str
    retryable: bool
    request_id: str
    details: list[FieldError] | None = None


class ErrorAnswer(ResponseModel):
    """Every error, whatever its status, has this shape."""

    success: Literal[False] = False
    error: ErrorBody


class RunLinks(ResponseModel):
    self: str
    events: str
    logs: str
    diff: str
    cancel: str
    websocket: str


class ResultView(ResponseModel):
    outcome: Literal["completed", "failed", "cancelled", "timed_out", "suspended"]
    summary: str
    plan: Plan | None
    gate: GateReport | None
    commit: CommitInfo | None
    pull_request: PullRequestInfo | None
    ci: Annotated[CiOutcome | None, Field(description="what the repository's own CI said, if it was followed")]
    story: StoryOutcome | None
    findings: list[Finding]
    suites: list[SuiteResult]
    question: Annotated[str | None, Field(description="what the run asked when it stopped to wait")]
    exhausted: Annotated[LimitName | None, Field(description="the limit that stopped it")]
    diff_stat: DiffStat | None
    usage: Usage
    durations_ms: dict[str, int]
    model: str | None
    log_url: Annotated[str | None, Field(description="route of the log, if there is one")]
    diff_url: Annotated[str | None, Field(description="route of the diff, if there is one")]


class BudgetView(ResponseModel):
    max_turns: int | None
    max_cost_usd: float | None
    max_total_tokens: int | None
    timeout_seconds: int | None


class RunView(ResponseModel):
    run_id: str
    status: Status
    suspend_reason: SuspendReason | None
    question: Annotated[str | None, Field(description="what it waits to be told; answer with a message")]
    approval: Annotated[ApprovalRequest | None, Field(description="what it asks for; answer by its id")]
    type: TaskType
    task: str
    repo: str | None
    branch: str | None
    model: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    attempt: int
    usage: Annotated[Usage, Field(description="of all attempts so far")]
    budget: Annotated[BudgetView, Field(description="the limits in force; null is no limit")]
    last_seq: int
    queue_position: Annotated[int | None, Field(description="of a run that waits for a slot; 1 is next")]
    queue_line: Annotated[ScopeKind | None, Field(description="whose slots it waits for")]
    estimated_wait_seconds: int | None
    cancel_requested: bool
    result: ResultView | None
    error: ErrorInfo | None
    links: RunLinks


class StartedAnswer(ResponseModel):
    success: Literal[True] = True
    run_id: str
    execution_id: Annotated[str, Field(description="the same as run_id")]
    request_id: str
    status: Status
    timestamp: datetime
    links: RunLinks


class RunAnswer(ResponseModel):
    success: Literal[True] = True
    run: RunView


class MessageAnswer(ResponseModel):
    success: Literal[True] = True
    n: Annotated[int, Field(description="the message's number in the run's inbox")]
    run: RunView


class RunsAnswer(ResponseModel):
    success: Literal[True] = True
    runs: list[RunView]
    cursor: Annotated[str | None, Field(description="where the next page begins; null on the last")]


class EventView(ResponseModel):
    run_id: str
    seq: int
    ts: datetime
    attempt: int
    type: EventType
    data: dict[str, Any]


class EventsAnswer(ResponseModel):
    success: Literal[True] = True
    events: list[EventView]
    last_seq: Annotated[int, Field(description="number of the newest event of the run")]


class DownloadAnswer(ResponseModel):
    success: Literal[True] = True
    url: str
    expires_at: datetime


class LogPartView(ResponseModel):
    name: Annotated[str, Field(description="`after` of the next page")]
    attempt: int
    first_seq: Annotated[int | None, Field(description="number of the first event that it tells of; null: of none")]
    last_seq: int | None
    url: Annotated[str, Field(description="of the part, compressed by gzip")]


class LogAnswer(ResponseModel):
    success: Literal[True] = True
    url: Annotated[str | None, Field(description="of the whole log, plain text; null while the run is at work")]
    expires_at: datetime
    parts: list[LogPartView]


class TicketAnswer(ResponseModel):
    success: Literal[True] = True
    ticket: str
    expires_at: datetime
    websocket_url: str


class QuotaView(ResponseModel):
    scope: ScopeKind
    name: str
    limits: list[LimitUse]


class QuotaAnswer(ResponseModel):
    success: Literal[True] = True
    quota: QuotaView


class UsageAnswer(ResponseModel):
    """Of all your runs in one month, in UTC; a run that goes on over midnight counts in both."""

    success: Literal[True] = True
    month: str
    runs: Annotated[int, Field(description="started in this month")]
    turns: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float
    quotas: Annotated[list[QuotaView], Field(description="yours and your organization's, as they are now")]


class HealthChecks(ResponseModel):
    database: bool
    storage: bool
    model: Annotated[bool, Field(description="a model key is set, or an endpoint of one's own")]
    github: Annotated[Literal["configured", "unconfigured"], Field(description="configured; it is not contacted")]


class HealthAnswer(ResponseModel):
    status: Literal["healthy", "degraded"]
    service: Literal["sandpiper"] = "sandpiper"
    timestamp: datetime
    version: str
    checks: HealthChecks
