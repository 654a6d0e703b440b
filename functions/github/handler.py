"""Lambda invoke (sandbox, webhook, workflow) and a schedule → github. It alone holds the App's private key."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from github.world import world
from sandpiper.errors import GitHubError, SandpiperError
from sandpiper.logic.github.deliveries import Delivery
from sandpiper.logic.github.signatures import is_proven

if TYPE_CHECKING:
    from collections.abc import Callable

    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:
    match event.get("action"):
        case "token":
            return _answered(event, _token)
        case "resolve":
            return _answered(event, _resolve)
        case "delivery":
            return {"did": _obey(event["delivery"], event["proof"])}
        case "tell":
            logger.append_keys(run_id=event["run_id"])
            world().teller.tell(event["run_id"])
            return {}
        case None if event.get("source") == "aws.events":
            return _sweep()
    message = f"unknown action {event.get('action')}"
    raise ValueError(message)


def _answered(event: dict[str, Any], answer: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """To a sandbox. A refusal is an answer: only what nobody foresaw is an error of the function."""
    logger.append_keys(run_id=event["run_id"], attempt=event["attempt"])
    try:
        return answer(event)
    except SandpiperError as error:
        logger.warning("refused", action=event["action"], error_type=error.type, reason=error.message)
        told = {"type": error.type, "message": error.message, "retryable": error.retryable}
        return {"error": told | ({"code": error.code} if isinstance(error, GitHubError) else {})}


def _token(event: dict[str, Any]) -> dict[str, Any]:
    token = world().minter.token(event["run_id"], event["attempt"])
    logger.info("token minted", given=token is not None)
    return token.model_dump(mode="json") if token else {"token": None}


def _resolve(event: dict[str, Any]) -> dict[str, Any]:
    resolved = world().resolver.resolve(event["run_id"], event["attempt"], event["threads"])
    logger.info("remarks resolved", resolved=resolved)
    return {"resolved": resolved}


def _obey(text: str, proof: str) -> str:
    if not is_proven(world().webhook_secret(), text, proof):
        logger.warning("a delivery without proof")
        return "refused"
    delivery = Delivery(**json.loads(text))
    logger.append_keys(delivery=delivery.id, verb=delivery.verb, repository=delivery.repository, by=delivery.sender)
    try:
        did = world().orders.obey(delivery)
    except GitHubError as error:
        if error.retryable:
            raise
        # The App was removed or suspended, the conversation locked, the issue deleted: nobody is there to be told.
        logger.warning("GitHub refused", reason=error.message)
        return "refused by GitHub"
    logger.info("obeyed", did=did)
    return did


def _sweep() -> dict[str, Any]:
    swept = asdict(world().sweep.run())
    logger.info("swept", **swept)
    return swept
