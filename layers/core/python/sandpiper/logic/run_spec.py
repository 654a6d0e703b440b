"""Three request bodies in, one RunSpec out."""

from __future__ import annotations

from typing import Any

from sandpiper.errors import ValidationError
from sandpiper.logic.repos import RefusedRepository, RepoRules
from sandpiper.models.requests import ExecuteRequest, ParamsBody, RunOptions, TaskRequest
from sandpiper.models.spec import READ_ONLY_TASKS, RunSpec, TaskType, TrustLevel

# Accepted because the seeds and their users send them; nothing reads them yet, and the run says so, unless the value
# asks for what happens anyway.
_WITHOUT_EFFECT: dict[str, tuple[object, ...]] = {
    "temperature": (),
    "auto_deploy": (False,),
    "worker_name": (),
    "callback_url": (),
}
_SAME_NAME = (
    "model", "prompt_strategy", "commit_message", "create_pr", "include_diff", "permission_mode", "system_prompt",
    "append_system_prompt", "allowed_tools", "egress", "max_turns", "max_tokens", "max_total_tokens", "max_cost_usd",
    "gate_mode", "temperature", "timeout_seconds", "auto_deploy", "worker_name", "callback_url",
)  # fmt: skip
_TRUST_OF_MODE: dict[str, TrustLevel] = {
    "bypassPermissions": "trusted",
    "acceptEdits": "balanced",
    "default": "balanced",
    "plan": "strict",
}


def spec_of(request: ExecuteRequest, rules: RepoRules) -> RunSpec:
    body = request.root
    if isinstance(body, ParamsBody):
        return _spec(body.params, body.task, _given(body.params), rules, prefix="params.")
    options = _given(body.options) if body.options else {}
    return _spec(body, body.type, _given(body) | options, rules, prefix="")


def _given(options: RunOptions) -> dict[str, Any]:
    """What the caller set: an explicit null counts as not given."""
    names = RunOptions.model_fields
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def _spec(
    what: TaskRequest, task_type: TaskType | None, how: dict[str, Any], rules: RepoRules, *, prefix: str
) -> RunSpec:
    kind: TaskType = task_type or "feature-implementation"
    fields: dict[str, Any] = {name: how[name] for name in _SAME_NAME if name in how}
    return RunSpec(
        **fields,
        type=kind,
        task=what.task,
        context=what.context,
        repo=what.repo,
        repo_url=_repo_url(what.repo, rules, prefix),
        branch=what.branch,
        base=what.base,
        paths=tuple(what.paths or ()),
        commit=_commits(kind, how),
        trust_level=_trust(how),
        unused_options=_unused(kind, how),
    )


def _unused(kind: TaskType, how: dict[str, Any]) -> tuple[str, ...]:
    named = [name for name, as_it_is in _WITHOUT_EFFECT.items() if name in how and how[name] not in as_it_is]
    if how.get("create_pr") and not _commits(kind, how):
        named.append("create_pr")
    return tuple(named)


def _commits(kind: TaskType, how: dict[str, Any]) -> bool:
    return kind not in READ_ONLY_TASKS and how.get("should_commit", True) and not how.get("skip_commit", False)


def _trust(how: dict[str, Any]) -> TrustLevel:
    """Who wants no approvals is asked for none; else the level that was named comes before the mode."""
    if how.get("approvals") is False:
        return "trusted"
    named: TrustLevel | None = how.get("trust_level")
    return named or _TRUST_OF_MODE.get(how.get("permission_mode", ""), "balanced")


def _repo_url(repo: str | None, rules: RepoRules, prefix: str) -> str | None:
    if repo is None:
        return None
    try:
        return rules.url_of(repo)
    except RefusedRepository as refusal:
        field = f"{prefix}repo"
        raise ValidationError(
            f"{field} {refusal.message}", details=[{"field": field, "message": refusal.message}]
        ) from refusal
