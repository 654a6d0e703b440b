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
    from collections.abc import Collection

    from sandbox_task.agent.policy.risks import Risk
    from sandbox_task.model.port import ToolCall
    from sandpiper.models.spec import TrustLevel

_RUNS_LATER = re.compile(
    r"(?:.*/)?(?:\.github/(?:workflows|actions)/.+|\.gitlab-ci\.ya?ml|\.circleci/.+|Jenkinsfile|azure-pipelines\.ya?ml"
    r"|bitbucket-pipelines\.ya?ml|\.travis\.ya?ml|\.drone\.ya?ml|\.buildkite/.+|\.git/.+|\.husky/.+|\.githooks/.+"
    r"|\.pre-commit-config\.ya?ml|\.sandpiper\.yml|\.envrc)"
)


def assess(call: ToolCall, trust: TrustLevel, *, workspace: str = "/workspace") -> Risk | None:
    """The risk to ask about, or None: the call may be made."""
    if trust == "trusted":
        return None
    given = call.arguments
    match call.name:
        case "run_command":
            place = Place.at(workspace, str(given.get("cwd") or "."))
            return RULES.of_text(str(given.get("command", "")), place) or (risks.COMMAND if trust == "strict" else None)
        case "send_input":
            typed = RULES.of_text(str(given.get("text", "")), Place.at(workspace))
            return typed or (risks.INPUT if trust == "strict" else None)
        case "run_code":
            found = risk_of_code(str(given.get("code", "")), Place.at(workspace))
            return found or (risks.CODE if trust == "strict" else None)
        case "write_file" | "edit_file" if trust == "strict" and _RUNS_LATER.fullmatch(str(given.get("path", ""))):
            return risks.RUNS_LATER
        case _:
            return None


def needs_approval_for_host(host: str, trust: TrustLevel, allowed: Collection[str]) -> Risk | None:
    """For whoever lets connections out: `allowed` are the hosts that nobody need be asked about."""
    return None if trust == "trusted" or host in allowed else risks.NETWORK
