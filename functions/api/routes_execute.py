"""POST /execute"""

from typing import Annotated, Any

from aws_lambda_powertools import Logger, single_metric
from aws_lambda_powertools.event_handler import Response, content_types
from aws_lambda_powertools.event_handler.openapi.params import Body, Header
from aws_lambda_powertools.metrics import MetricUnit

from api.requests import VISIBLE, Caller, CurrentWorld, IdempotencyKey, RequestId, seconds_to_wait
from api.resolver import new_router
from api.views import links, run_view
from api.world import World
from sandpiper import limits
from sandpiper.logic.run_spec import spec_of
from sandpiper.logic.start_run import wait_for_end
from sandpiper.models.identity import Identity
from sandpiper.models.requests import ExecuteRequest
from sandpiper.models.responses import RunAnswer, StartedAnswer
from sandpiper.models.run import Run
from sandpiper.models.spec import RunSpec

logger = Logger()
router = new_router()


@router.post("/execute", summary="Start a run", operation_id="execute", tags=["runs"], status_code=202)
def execute(
    *,
    body: Annotated[ExecuteRequest, Body()],
    world: CurrentWorld,
    caller: Caller,
    request_id: RequestId,
    prefer: Annotated[
        str | None, Header(alias="Prefer", description="`wait=N`: answer 200 with the run if it ends within N seconds")
    ] = None,
    idempotency_key: IdempotencyKey = None,
    github_token: Annotated[
        str | None, Header(alias="X-GitHub-Token", pattern=VISIBLE, max_length=limits.MAX_GITHUB_TOKEN_CHARS)
    ] = None,
) -> Response[StartedAnswer | RunAnswer]:
    secrets = {"github_token": github_token} if github_token else {}
    run = _start(world, caller, spec_of(body, world.repo_rules), secrets, idempotency_key)
    logger.append_keys(run_id=run.run_id)
    polls = int(seconds_to_wait(prefer) / limits.WAIT_POLL_SECONDS)
    run = wait_for_end(world.runs, run, polls=polls, pause=lambda: world.sleep(limits.WAIT_POLL_SECONDS))
    if polls and run.is_terminal:
        return _json(200, RunAnswer(run=run_view(run, world.websocket_url)))
    return _json(202, _started(run, request_id, world))


def _start(world: World, caller: Identity, spec: RunSpec, secrets: dict[str, str], key: str | None) -> Run:
    if key is None:
        return _counted(world.starter.start(spec, caller, secrets))
    run_id = world.idempotency().once(
        owner=caller.user,
        key=key,
        body=spec.model_dump(mode="json"),
        start=lambda: _counted(world.starter.start(spec, caller, secrets, key)).run_id,
        context=router.lambda_context,
    )
    return world.runs.get(run_id)


def _counted(run: Run) -> Run:
    with single_metric(name="RunsStarted", unit=MetricUnit.Count, value=1):
        return run


def _started(run: Run, request_id: str, world: World) -> StartedAnswer:
    return StartedAnswer(
        run_id=run.run_id,
        execution_id=run.run_id,
        request_id=request_id,
        status=run.status,
        timestamp=run.created_at,
        links=links(run.run_id, world.websocket_url),
    )


def _json(status: int, body: Any) -> Response[Any]:
    return Response(status_code=status, content_type=content_types.APPLICATION_JSON, body=body)
