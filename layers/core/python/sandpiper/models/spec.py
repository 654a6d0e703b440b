"""What a run is asked to do: the one model that the three request bodies become."""

from typing import Literal

from pydantic import Field

from sandpiper import limits
from sandpiper.models.base import Model
from sandpiper.models.github import GitHubOrigin

TaskType = Literal[
    "feature-implementation", "bug-fix", "refactoring", "documentation", "testing", "migration",
    "code-review", "test-suite",
]  # fmt: skip
PromptStrategy = Literal[
    "auto", "feature-delivery", "bug-fix", "refactor", "test-hardening", "documentation", "migration", "review",
]  # fmt: skip
TrustLevel = Literal["strict", "balanced", "trusted"]
GateMode = Literal["strict", "regression", "informational"]

READ_ONLY_TASKS: frozenset[str] = frozenset({"code-review", "test-suite"})


class RunSpec(Model):
    """One task, with every option that was asked for. Holds no secret."""

    type: TaskType = "feature-implementation"
    task: str
    context: str | None = None
    repo: str | None = None  # as the caller wrote it, for people
    repo_url: str | None = None  # what is cloned; None: an empty workspace
    branch: str | None = None
    base: str | None = None
    paths: tuple[str, ...] = ()
    model: str = "sonnet"
    prompt_strategy: PromptStrategy = "auto"
    commit: bool = True
    commit_message: str | None = None
    create_pr: bool = False
    include_diff: bool = True
    trust_level: TrustLevel = "balanced"
    permission_mode: str | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    allowed_tools: tuple[str, ...] | None = None
    egress: tuple[str, ...] = ()  # hosts that commands may reach besides those that they can anyway
    max_turns: int = limits.DEFAULT_MAX_TURNS
    max_tokens: int | None = None
    max_total_tokens: int | None = None  # over all turns, in and out; max_tokens bounds one reply
    max_cost_usd: float | None = None
    gate_mode: GateMode | None = None  # None: as the repository says
    temperature: float | None = None
    timeout_seconds: int = limits.DEFAULT_TIMEOUT_SECONDS
    auto_deploy: bool = False
    worker_name: str | None = None
    callback_url: str | None = None
    github: GitHubOrigin | None = None  # None: asked for by HTTPS
    unused_options: tuple[str, ...] = Field(default=(), description="accepted for compatibility, without effect")
