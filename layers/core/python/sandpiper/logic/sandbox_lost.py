"""A sandbox has stopped: whoever still waits for its answer is told at once, not at the next heartbeat.

A sandbox that has answered before it stopped leaves a token that nobody waits on, which is how most of them end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandpiper.errors import Fenced

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sandpiper.ports import Workflow

TOKEN_VARIABLE = "TASK_TOKEN"
ERROR = "SandboxLost"


def task_stopped(detail: Mapping[str, Any], workflow: Workflow) -> int:
    """Fail every token of the stopped task; returns how many were still waited on."""
    return sum(_fail(workflow, token, _reason(detail)) for token in _tokens(detail))


def _tokens(detail: Mapping[str, Any]) -> Iterator[str]:
    for container in detail.get("overrides", {}).get("containerOverrides", []):
        for variable in container.get("environment", []):
            if variable.get("name") == TOKEN_VARIABLE and variable.get("value"):
                yield variable["value"]


def _reason(detail: Mapping[str, Any]) -> str:
    reasons = [detail.get("stoppedReason", "")]
    reasons += [f"{c.get('name')} exited with {c['exitCode']}" for c in detail.get("containers", []) if "exitCode" in c]
    reasons += [c["reason"] for c in detail.get("containers", []) if c.get("reason")]
    return "; ".join(filter(None, reasons)) or "the task stopped without a reason"


def _fail(workflow: Workflow, token: str, reason: str) -> bool:
    try:
        workflow.fail(token, ERROR, reason)
    except Fenced:
        return False
    return True
