"""Whether a person is asked before a call is made.

The policy decides whether to ask; it is not the wall. It reads what a call says, and a call can hide what it does. What
keeps the model from what we hold is the wall alone, whose rules are the same at every trust level.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandbox_task.agent.policy import risks
from sandbox_task.agent.policy.code import RULES, risk_of_code
from sandbox_task.agent.policy.places import Place

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_task.agent.policy.risks import Risk
    from sandbox_task.model.port import ToolCall
    from sandpiper.models.spec import TrustLevel

_RUNS_LATER = re.compile(
    r"(?:.*/)?(?:\.github/(?:workflows|actions)/.+|\.gitlab-ci\.ya?ml|\.circleci/.+|Jenkinsfile|azure-pipelines\.ya?ml"
    r"|bitbucket-pipelines\.ya?ml|\.travis\.ya?ml|\.drone\.ya?ml|\.buildkite/.+|\.git/.+|\.husky/.+|\.githooks/.+"
    r"|\.pre-commit-config\.ya?ml|\.sandpiper\.yml|\.envrc)"
)


def assess(
    call: ToolCall,
    trust: TrustLevel,
    *,
    workspace: str = "/workspace",
    may_ask: Callable[[str], bool] = lambda _host: True,
) -> Risk | None:
    """The risk to ask about, or None: the call may be made. `may_ask`: whether a person can open this host."""
    if trust == "trusted":
        return None
    found, of_its_kind = _risks(call, workspace, may_ask)
    return found or (of_its_kind if trust == "strict" else None)


def _risks(call: ToolCall, workspace: str, may_ask: Callable[[str], bool]) -> tuple[Risk | None, Risk | None]:
    """What it says that it does, and what every call of its kind may do."""
    given = {name: str(value or "") for name, value in call.arguments.items()}
    match call.name:
        case "run_command":
            place = Place.at(workspace, given.get("cwd") or ".")
            return RULES.of_text(given.get("command", ""), place), risks.COMMAND
        case "send_input":
            return RULES.of_text(given.get("text", ""), Place.at(workspace)), risks.INPUT
        case "run_code":
            return risk_of_code(given.get("code", ""), Place.at(workspace)), risks.CODE
        case "request_network" if may_ask(given.get("host", "")):
            return risks.network(given["host"].strip().lower()), None
        case "write_file" | "edit_file" if _RUNS_LATER.fullmatch(given.get("path", "")):
            return None, risks.RUNS_LATER
        case _:
            return None, None
