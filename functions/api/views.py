"""The domain as callers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandpiper.logic.budgets import in_force
from sandpiper.models.responses import (
    BudgetView,
    EventView,
    LogAnswer,
    LogPartView,
    QuotaView,
    ResultView,
    RunLinks,
    RunView,
)  # fmt: skip

if TYPE_CHECKING:
    from api.world import World
    from sandpiper.logic.artifacts import LogDownload, PartDownload
    from sandpiper.models.events import Event
    from sandpiper.models.quota import Scope
    from sandpiper.models.run import Run, RunResult


def run_view(run: Run, websocket_url: str) -> RunView:
    return RunView(
        run_id=run.run_id,
        status=run.status,
        suspend_reason=run.suspend_reason,
        question=run.result.question if run.result and run.suspend_reason == "awaiting_input" else None,
        approval=run.approval,
        type=run.spec.type,
        task=run.spec.task,
        repo=run.spec.repo,
        branch=run.spec.branch,
        model=run.spec.model,
        created_at=run.created_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        attempt=run.attempt,
        usage=run.usage,
        budget=BudgetView(**in_force(run.spec, run.budget).model_dump(exclude={"month_usd"})),
        last_seq=run.last_seq,
        queue_position=run.queue_position,
        queue_line=run.queue_line,
        estimated_wait_seconds=run.estimated_wait_seconds,
        cancel_requested=run.cancel_requested,
        result=_result_view(run.result, run.run_id) if run.result else None,
        error=run.error,
        links=links(run.run_id, websocket_url),
    )


def links(run_id: str, websocket_url: str) -> RunLinks:
    path = f"/runs/{run_id}"
    return RunLinks(
        self=path,
        events=f"{path}/events",
        logs=f"{path}/logs",
        diff=f"{path}/diff",
        cancel=f"{path}/cancel",
        websocket=websocket_url,
    )


def event_view(event: Event) -> EventView:
    return EventView(**dict(event))


def quota_view(world: World, scope: Scope) -> QuotaView:
    uses = world.quotas.uses(world.quotas.account(scope), len(world.line.slots.held(scope).active))
    return QuotaView(scope=scope.kind, name=scope.name, limits=uses)


def log_view(log: LogDownload) -> LogAnswer:
    return LogAnswer(url=log.url, expires_at=log.expires_at, parts=[_part_view(found) for found in log.parts])


def _part_view(found: PartDownload) -> LogPartView:
    part = found.part
    return LogPartView(
        name=part.name,
        attempt=part.attempt,
        first_seq=part.first_seq or None,
        last_seq=part.last_seq or None,
        url=found.url,
    )


def _result_view(result: RunResult, run_id: str) -> ResultView:
    shown = {name: getattr(result, name) for name in ResultView.model_fields if hasattr(result, name)}
    return ResultView(
        **shown,
        log_url=f"/runs/{run_id}/logs" if result.log_key else None,
        diff_url=f"/runs/{run_id}/diff" if result.diff_key else None,
    )
