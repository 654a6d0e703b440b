"""What people ask of a run over a socket: the rules, bodies and errors are those of the routes with these names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pydantic

from sandpiper.logic.control import Answer, Controls
from sandpiper.logic.validation import refusal
from sandpiper.models.identity import Identity
from sandpiper.models.requests import ApprovalAnswer, BudgetRequest, MessageRequest, PauseRequest
from sandpiper.models.run import Budget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandpiper.logic.frames import Control
    from sandpiper.models.run import Run


class ApprovalFrame(ApprovalAnswer):
    approval_id: str


def perform(controls: Controls, frame: Control, identity: Mapping[str, Any]) -> dict[str, Any]:
    """What the `ack` says. Raises SandpiperError."""
    caller = Identity(user=identity["user"], org=identity.get("org"))
    if frame.action == "message":
        words = _read(MessageRequest, frame.body)
        message, run = controls.say(frame.run_id, words.text, caller, key=frame.key)
        return {"n": message.n, "run": _shown(run)}
    return {"run": _shown(_performed(controls, frame, caller))}


def _performed(controls: Controls, frame: Control, caller: Identity) -> Run:
    match frame.action:
        case "cancel":
            return controls.cancel(frame.run_id, caller)
        case "resume":
            return controls.resume(frame.run_id, caller)
        case "pause":
            return controls.pause(frame.run_id, caller, now=_read(PauseRequest, frame.body).now)
        case "budget":
            wanted = Budget(**_read(BudgetRequest, frame.body).model_dump())
            return controls.grant(frame.run_id, wanted, caller)
        case "approve" | "reject":
            answer = _read(ApprovalFrame, {**frame.body, "decision": frame.action})
            given = Answer(answer.decision, answer.note, answer.scope)
            return controls.answer(frame.run_id, answer.approval_id, given, caller)
    raise AssertionError(frame.action)


def _read[Body: pydantic.BaseModel](kind: type[Body], body: Mapping[str, Any]) -> Body:
    try:
        return kind.model_validate(dict(body))
    except pydantic.ValidationError as error:
        raise refusal(error.errors()) from error


def _shown(run: Run) -> dict[str, Any]:
    """What has changed by it; the rest would not fit into a frame."""
    return run.model_dump(
        mode="json", include={"run_id", "status", "suspend_reason", "cancel_requested", "attempt", "last_seq"}
    )
