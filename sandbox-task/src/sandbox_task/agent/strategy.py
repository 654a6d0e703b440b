"""Which guidance a task gets: what was asked for, else what its type says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandpiper.models.spec import PromptStrategy, RunSpec, TaskType

_BY_TYPE: dict[TaskType, PromptStrategy] = {
    "feature-implementation": "feature-delivery",
    "bug-fix": "bug-fix",
    "refactoring": "refactor",
    "documentation": "documentation",
    "testing": "test-hardening",
    "migration": "migration",
    "code-review": "review",
    "test-suite": "review",
}


@dataclass(frozen=True)
class Strategy:
    name: PromptStrategy
    source: str
    reason: str


def choose_strategy(spec: RunSpec) -> Strategy:
    if spec.prompt_strategy != "auto":
        return Strategy(spec.prompt_strategy, "request", "It was asked for.")
    return Strategy(_BY_TYPE[spec.type], "task_type", f"The task is of type {spec.type}.")
