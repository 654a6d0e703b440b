"""The bodies of requests: of `POST /execute` what the three seeds send; all in camelCase and in snake_case.

Types are strict, so that `"5"` is no number, and unknown fields are refused by the name the caller wrote.
What needs to know the deployment (which repositories may be cloned) is decided in `logic/run_spec.py`.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    RootModel,
    Tag,
)
from pydantic.alias_generators import to_camel

from sandpiper import limits
from sandpiper.models.spec import GateMode, PromptStrategy, TaskType, TrustLevel

# The seeds mix both spellings. The one that they use comes first and is the documented one.
_CAMEL_IN_THE_SEEDS = frozenset(
    {"prompt_strategy", "should_commit", "skip_commit", "commit_message", "trust_level", "timeout_seconds"}
)

# git check-ref-format, and no leading dash: a name must never be read as an option. Nor may it look like another ref.
BRANCH_PATTERN = (
    r"^(?![-./])(?!(?:@|HEAD)$)(?!refs/)(?!.*(?:\.\.|//|/\.|@\{|\.lock(?:/|$)))"
    r"[^\x00-\x20\x7f-\x9f~^:?*\[\\]*[^\x00-\x20\x7f-\x9f~^:?*\[\\./]$"
)
# Relative, inside the repository, and neither an option nor one of git's `:(magic)` pathspecs.
PATH_PATTERN = r"^(?![-/:~])(?!.*(?:^|/)\.\.(?:/|$))[^\x00-\x1f\x7f-\x9f\\]+$"
# Each segment begins with neither a dash nor is it a step upwards.
_SEGMENT = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._~][A-Za-z0-9._~-]*"
# A top-level domain is made of letters, so no address in figures (of a metadata service, say) is a host name.
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}"
SHORT_REPO_PATTERN = r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._][A-Za-z0-9._-]{0,99}"
HTTPS_REPO_PATTERN = rf"https://{_HOST}(?::[0-9]{{1,5}})?(?:/{_SEGMENT})+/?"
REPO_PATH_PATTERN = rf"{_SEGMENT}(?:/{_SEGMENT})*/?"
MODEL_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:/-]*$"
TOOL_PATTERN = r"^[A-Za-z_][A-Za-z0-9_-]*$"
WORKER_PATTERN = r"^[a-z0-9][a-z0-9-]*$"
# `host` or `*.host`, with `:port` if it is not 443: never an address in figures, never every host
_PORT = r"(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
EGRESS_PATTERN = rf"^(?:\*\.)?{_HOST}(?::{_PORT})?$"
URL_PATTERN = r"^https://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]*)?$"
NOT_BLANK = r"\S"


def _matching(pattern: str, complaint: str) -> tuple[AfterValidator, Any]:
    """A rule with lookaheads, which pydantic's own engine lacks, and its entry in the schema."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(complaint)
        return value

    return AfterValidator(check), Field(
        min_length=1, max_length=limits.MAX_NAME_CHARS, json_schema_extra={"pattern": pattern}
    )


_branch_rule, _branch_field = _matching(BRANCH_PATTERN, "is not a valid git branch name")
_path_rule, _path_field = _matching(PATH_PATTERN, "must be a path inside the repository")


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 5.0 is 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = BeforeValidator(_whole)  # stands after the limits, which would else be missing in the schema
BranchName = Annotated[str, _branch_field, _branch_rule]
RelativePath = Annotated[str, _path_field, _path_rule]
TaskText = Annotated[str, Field(min_length=1, max_length=limits.MAX_TASK_CHARS, pattern=NOT_BLANK)]
PromptText = Annotated[str, Field(max_length=limits.MAX_PROMPT_CHARS)]
HostPattern = Annotated[str, Field(max_length=limits.MAX_HOST_CHARS, pattern=EGRESS_PATTERN)]
ToolName = Annotated[str, Field(max_length=64, pattern=TOOL_PATTERN)]
# Checked in logic/repos.py, which knows what else this deployment clones.
RepoName = Annotated[
    str,
    Field(
        max_length=limits.MAX_URL_CHARS,
        json_schema_extra={"pattern": f"^(?:{SHORT_REPO_PATTERN}|{HTTPS_REPO_PATTERN})$"},
    ),
]
PermissionMode = Literal["default", "acceptEdits", "plan", "bypassPermissions"]


def _both_spellings(name: str) -> str | AliasChoices:
    camel = to_camel(name)
    if camel == name:
        return name
    return AliasChoices(camel, name) if name in _CAMEL_IN_THE_SEEDS else AliasChoices(name, camel)


class RequestModel(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        defer_build=True,  # cold starts: built with the first request that needs it
        alias_generator=AliasGenerator(validation_alias=_both_spellings),
    )


class RunOptions(RequestModel):
    """How a task is done. Accepted beside the task and, in a flat body, under `options`, which wins."""

    model: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS, pattern=MODEL_PATTERN)] | None = None
    prompt_strategy: PromptStrategy | None = None
    should_commit: bool | None = None
    skip_commit: bool | None = None
    commit_message: Annotated[
        str, Field(min_length=1, max_length=limits.MAX_COMMIT_MESSAGE_CHARS, pattern=NOT_BLANK)
    ] | None = None  # fmt: skip
    create_pr: bool | None = None
    include_diff: bool | None = None
    trust_level: TrustLevel | None = None
    permission_mode: PermissionMode | None = None
    approvals: bool | None = None
    system_prompt: PromptText | None = None
    append_system_prompt: PromptText | None = None
    allowed_tools: Annotated[list[ToolName], Field(max_length=limits.MAX_LIST_ITEMS)] | None = None
    egress: Annotated[list[HostPattern], Field(max_length=limits.MAX_LIST_ITEMS)] | None = None
    max_turns: Annotated[int, Field(ge=1, le=limits.MAX_TURNS), Whole] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=limits.MAX_OUTPUT_TOKENS), Whole] | None = None
    max_total_tokens: Annotated[int, Field(ge=1, le=limits.MAX_TOTAL_TOKENS), Whole] | None = None
    max_cost_usd: Annotated[float, Field(gt=0, le=limits.MAX_COST_USD)] | None = None
    gate_mode: GateMode | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    timeout_seconds: Annotated[
        int, Field(ge=limits.MIN_TIMEOUT_SECONDS, le=limits.MAX_TIMEOUT_SECONDS), Whole
    ] | None = None  # fmt: skip
    auto_deploy: bool | None = None
    worker_name: Annotated[str, Field(max_length=63, pattern=WORKER_PATTERN)] | None = None
    callback_url: Annotated[str, Field(max_length=limits.MAX_URL_CHARS, pattern=URL_PATTERN)] | None = None


class TaskRequest(RunOptions):
    """What is to be done and where."""

    task: TaskText
    context: PromptText | None = None
    repo: RepoName | None = None
    branch: BranchName | None = None
    base: BranchName | None = None
    paths: Annotated[list[RelativePath], Field(max_length=limits.MAX_LIST_ITEMS)] | None = None


class ParamsBody(RequestModel):
    """`{"task": "<type>", "params": {…}}`"""

    task: TaskType
    params: TaskRequest


class FlatBody(TaskRequest):
    """`{"task": "<text>", …, "options": {…}}`"""

    type: TaskType | None = None
    options: RunOptions | None = None


def _shape(body: Any) -> str:
    return "<params>" if isinstance(body, dict) and "params" in body else "<flat>"


class ExecuteRequest(RootModel[Any]):
    """Either body. Tags are in angle brackets so that they can be told from the names of fields in an error."""

    model_config = ConfigDict(defer_build=True)

    root: Annotated[
        Annotated[ParamsBody, Tag("<params>")] | Annotated[FlatBody, Tag("<flat>")],
        Discriminator(_shape),
    ]


class BudgetRequest(RequestModel):
    """New limits of a run, for all of it; without any: what "continue" means."""

    max_turns: Annotated[int, Field(ge=1, le=limits.MAX_RAISED_TURNS), Whole] | None = None
    max_cost_usd: Annotated[float, Field(gt=0, le=limits.MAX_RAISED_COST_USD)] | None = None
    max_total_tokens: Annotated[int, Field(ge=1, le=limits.MAX_RAISED_TOTAL_TOKENS), Whole] | None = None
    timeout_seconds: Annotated[int, Field(ge=1, le=limits.MAX_RAISED_TIMEOUT_SECONDS), Whole] | None = None


class ApprovalAnswer(RequestModel):
    """To what a run has asked for. `scope: "run"`: the same kind of risk is not asked about again."""

    decision: Literal["approve", "reject"]
    note: Annotated[str, Field(min_length=1, max_length=limits.MAX_NOTE_CHARS)] | None = None
    scope: Literal["call", "run"] = "call"


class PauseRequest(RequestModel):
    """`now` interrupts the command in hand."""

    now: bool = False


class MessageRequest(RequestModel):
    """Words for a run that is under way, or the answer to its question."""

    text: Annotated[str, Field(min_length=1, max_length=limits.MAX_MESSAGE_CHARS, pattern=NOT_BLANK)]


class QuotaRequest(RequestModel):
    """All limits of a user or an organization; what is not given is the default: the deployment's, or none."""

    starts_per_minute: Annotated[int, Field(ge=1, le=limits.MAX_STARTS), Whole] | None = None
    starts_per_day: Annotated[int, Field(ge=1, le=limits.MAX_STARTS), Whole] | None = None
    monthly_usd: Annotated[float, Field(ge=0, le=limits.MAX_MONTHLY_USD)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=limits.MAX_CONCURRENCY), Whole] | None = None
