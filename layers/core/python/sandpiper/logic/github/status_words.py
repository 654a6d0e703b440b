"""What the status comment says of each status, and what a reader can do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandpiper.models.run import Run

_HEADLINES = {
    "queued": "⏳ waiting",
    "provisioning": "⏳ starting a sandbox",
    "running": "🏃 at work",
    "completed": "✅ done",
    "failed": "❌ failed",
    "cancelled": "⏹️ cancelled",
    "timed_out": "⌛ out of time",
}
_WAITING = {
    "paused": "⏸️ paused",
    "awaiting_approval": "✋ asks for your approval",
    "awaiting_input": "❓ has a question",
    "awaiting_ci": "🔎 waits for CI",
    "budget_exhausted": "💰 has used up its budget",
}
_HINTS = {
    "repository_error": "Check that the App is installed here with the rights it asks for, and that the branch exists "
    "and may be pushed to. Then comment again.",
    "model_request_error": "The model could not be reached or refused. Comment again in a while.",
    "model_response_error": "The model's answers could not be used. Comment again, perhaps with a smaller task.",
    "sandbox_lost": "Comment again; if it keeps happening, the task may need more memory than a sandbox has.",
    "gate_failed": "Nothing was pushed. Look at the failing checks, say what is missing, and comment again.",
    "agent_loop_error": "Comment again with a clearer or smaller task.",
    "budget_exhausted": "Comment again with a smaller task, or have the limits raised.",
    "timeout": "Comment again with a smaller task.",
    "internal_error": "Something went wrong on our side. Comment again in a while.",
}


def headline(run: Run) -> str:
    if run.approval and not run.is_terminal:
        return _WAITING["awaiting_approval"]
    if run.status == "suspended":
        return _WAITING.get(run.suspend_reason or "paused", "⏸️ waiting")
    if run.status == "queued" and run.queue_position:
        return f"⏳ waiting, place {run.queue_position} in line"
    return _HEADLINES[run.status]


def hint(error_type: str) -> str:
    return _HINTS.get(error_type, "")


def next_step(run: Run) -> str:
    """In one sentence; empty where there is nothing to do but wait."""
    if run.approval and not run.is_terminal:
        name = run.approval.id
        return f"Answer with `/approve {name}` or `/reject {name} why`, or stop it with `/cancel`."
    if run.status == "suspended":
        return _how_to_go_on(run)
    if not run.is_terminal:
        return "`/cancel` stops it, `/say …` tells it something."
    if run.status == "completed" and run.result:
        return _after_success(run)
    return ""


def _how_to_go_on(run: Run) -> str:
    match str(run.suspend_reason):
        case "awaiting_ci":
            return "`/cancel` ends it; what was pushed stays."
        case "awaiting_input":
            return "Answer with a comment that begins with `/say`, or stop it with `/cancel`."
        case "budget_exhausted":
            return f"Its owner can go on with `sandpiper budget {run.run_id}`; `/cancel` ends it and keeps the work."
        case _:
            return f"Its owner can go on with `sandpiper resume {run.run_id}`; `/cancel` ends it."


def _after_success(run: Run) -> str:
    command = run.spec.github.command if run.spec.github else None
    if command == "review" and run.result and run.result.findings:
        return "Comment `/fix` here to have the remarks worked in."
    if command in {"review", "test"}:
        return ""
    if run.result and run.result.pull_request:
        return "Review the pull request; comment `/fix …` on it to have it changed."
    return "Comment again to have it changed."
