"""/runs: what has been asked for and how far it is."""

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query

from api.requests import Caller, CurrentWorld, RunId
from api.resolver import new_router
from api.views import event_view, log_view, run_view
from sandpiper import limits
from sandpiper.logic.access import own_run
from sandpiper.logic.artifacts import diff_download, log_download
from sandpiper.logic.log_parts import NAME_PATTERN
from sandpiper.models.responses import DownloadAnswer, EventsAnswer, LogAnswer, RunAnswer, RunsAnswer
from sandpiper.models.run import Status

PageSize = Annotated[int, Query(ge=1, le=limits.MAX_PAGE)]

router = new_router()


@router.get("/runs", summary="Your runs, newest first", operation_id="listRuns", tags=["runs"])
def list_runs(
    *,
    world: CurrentWorld,
    caller: Caller,
    status: Annotated[Status | None, Query()] = None,
    repo: Annotated[str | None, Query(max_length=limits.MAX_URL_CHARS, description="as the run was given it")] = None,
    limit: PageSize = limits.DEFAULT_PAGE,
    cursor: Annotated[str | None, Query(description="of the page before")] = None,
) -> RunsAnswer:
    page = world.runs.list_by_owner(caller.user, status=status, repo=repo, limit=limit, cursor=cursor)
    return RunsAnswer(runs=[run_view(run, world.websocket_url) for run in page.items], cursor=page.cursor)


@router.get("/runs/<run_id>", summary="One run", operation_id="getRun", tags=["runs"])
def get_run(run_id: RunId, world: CurrentWorld, caller: Caller) -> RunAnswer:
    return RunAnswer(run=run_view(own_run(world.runs, run_id, caller), world.websocket_url))


@router.get("/runs/<run_id>/events", summary="Its event log", operation_id="listEvents", tags=["runs"])
def list_events(
    run_id: RunId,
    world: CurrentWorld,
    caller: Caller,
    after: Annotated[int, Query(ge=0, le=limits.MAX_SEQ, description="events with a higher number")] = 0,
    limit: PageSize = limits.DEFAULT_PAGE,
) -> EventsAnswer:
    run = own_run(world.runs, run_id, caller)
    events = world.runs.events(run_id, after=after, limit=limit)
    return EventsAnswer(events=[event_view(event) for event in events], last_seq=run.last_seq)


@router.get("/runs/<run_id>/logs", summary="Links to its log", operation_id="getLog", tags=["runs"])
def get_log(
    run_id: RunId,
    world: CurrentWorld,
    caller: Caller,
    after: Annotated[str | None, Query(pattern=NAME_PATTERN, description="parts behind the one of this name")] = None,
    limit: PageSize = limits.DEFAULT_PAGE,
) -> LogAnswer:
    run = own_run(world.runs, run_id, caller)
    return log_view(log_download(run, world.blobs, world.clock, after=after, limit=limit))


@router.get("/runs/<run_id>/diff", summary="A link to its diff", operation_id="getDiff", tags=["runs"])
def get_diff(run_id: RunId, world: CurrentWorld, caller: Caller) -> DownloadAnswer:
    found = diff_download(own_run(world.runs, run_id, caller), world.blobs, world.clock)
    return DownloadAnswer(url=found.url, expires_at=found.expires_at)
