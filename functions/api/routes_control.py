"""/runs/{id}: asking a run to stop, to wait, to go on, to listen, answering it, and giving it more to spend."""

from typing import Annotated

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response, content_types
from aws_lambda_powertools.event_handler.openapi.params import Body

from api.requests import ApprovalId, Caller, CurrentWorld, IdempotencyKey, RunId
from api.resolver import new_router
from api.views import run_view
from sandpiper.logic.control import Answer
from sandpiper.models.requests import ApprovalAnswer, BudgetRequest, MessageRequest, PauseRequest
from sandpiper.models.responses import MessageAnswer, RunAnswer
from sandpiper.models.run import Budget

logger = Logger()
router = new_router()
_SOFTLY = PauseRequest()  # what no body means


@router.post("/runs/<run_id>/cancel", summary="Cancel it", operation_id="cancelRun", tags=["runs"], status_code=202)
def cancel(run_id: RunId, world: CurrentWorld, caller: Caller) -> Response[RunAnswer]:
    logger.append_keys(run_id=run_id)
    run = world.controls.cancel(run_id, caller)
    return Response(
        status_code=200 if run.is_terminal else 202,
        content_type=content_types.APPLICATION_JSON,
        body=RunAnswer(run=run_view(run, world.websocket_url)),
    )


@router.post(
    "/runs/<run_id>/budget",
    summary="Raise its limits; an empty object means: continue",
    operation_id="raiseBudget",
    tags=["runs"],
)
def raise_budget(
    run_id: RunId, body: Annotated[BudgetRequest, Body()], world: CurrentWorld, caller: Caller
) -> RunAnswer:
    logger.append_keys(run_id=run_id)
    run = world.controls.grant(run_id, Budget(**body.model_dump()), caller)
    return RunAnswer(run=run_view(run, world.websocket_url))


@router.post("/runs/<run_id>/messages", summary="Say something to it", operation_id="sendMessage", tags=["runs"])
def send_message(
    run_id: RunId,
    body: Annotated[MessageRequest, Body()],
    world: CurrentWorld,
    caller: Caller,
    idempotency_key: IdempotencyKey = None,
) -> MessageAnswer:
    logger.append_keys(run_id=run_id)
    message, run = world.controls.say(run_id, body.text, caller, key=idempotency_key)
    return MessageAnswer(n=message.n, run=run_view(run, world.websocket_url))


@router.post(
    "/runs/<run_id>/approvals/<approval_id>",
    summary="Approve or reject what it asks for",
    operation_id="answerApproval",
    tags=["runs"],
)
def answer_approval(
    run_id: RunId,
    approval_id: ApprovalId,
    body: Annotated[ApprovalAnswer, Body()],
    world: CurrentWorld,
    caller: Caller,
) -> RunAnswer:
    logger.append_keys(run_id=run_id)
    answer = Answer(body.decision, body.note, body.scope)
    return RunAnswer(run=run_view(world.controls.answer(run_id, approval_id, answer, caller), world.websocket_url))


@router.post("/runs/<run_id>/pause", summary="Let it wait", operation_id="pauseRun", tags=["runs"])
def pause(
    run_id: RunId, world: CurrentWorld, caller: Caller, body: Annotated[PauseRequest, Body()] = _SOFTLY
) -> RunAnswer:
    logger.append_keys(run_id=run_id)
    return RunAnswer(run=run_view(world.controls.pause(run_id, caller, now=body.now), world.websocket_url))


@router.post("/runs/<run_id>/resume", summary="Let it go on", operation_id="resumeRun", tags=["runs"])
def resume(run_id: RunId, world: CurrentWorld, caller: Caller) -> RunAnswer:
    logger.append_keys(run_id=run_id)
    return RunAnswer(run=run_view(world.controls.resume(run_id, caller), world.websocket_url))
