"""The bodies of our answers. Keys of the store stay inside: what can be downloaded is named by route."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sandpiper.models.events import EventType
from sandpiper.models.run import (
    CommitInfo,
    DiffStat,
    ErrorInfo,
    Finding,
    GateReport,
    Plan,
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
    story: StoryOutcome | None
    findings: list[Finding]
    suites: list[SuiteResult]
    question: Annotated[str | None, Field(description="what the run waits to be told")]
    diff_stat: DiffStat | None
    usage: Usage
    durations_ms: dict[str, int]
    model: str | None
    log_url: Annotated[str | None, Field(description="route of the log, if there is one")]
    diff_url: Annotated[str | None, Field(description="route of the diff, if there is one")]


class RunView(ResponseModel):
    run_id: str
    status: Status
    suspend_reason: SuspendReason | None
    type: TaskType
    task: str
    repo: str | None
    branch: str | None
    model: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    attempt: int
    last_seq: int
    queue_position: int | None
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


class TicketAnswer(ResponseModel):
    success: Literal[True] = True
    ticket: str
    expires_at: datetime
    websocket_url: str


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
