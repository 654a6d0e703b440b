"""Which guidance a task gets: what was asked for, else what its type says, else what its words say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sandpiper.models.spec import PromptStrategy, RunSpec, TaskType

_GENERIC: TaskType = "feature-implementation"
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
# What the task begins with decides: "Add an error page" is a feature, whatever it has to do with errors.
_FORMS = r"(?:e|es|s|y|ies|ed|ing)?\b"  # of a verb: fix, fixes, fixing, and not the fixture
_MADE = r"(?:add|write|create|improve|update|extend|increase)\b[^.\n]{0,40}\b"
_BEGINNINGS: tuple[tuple[PromptStrategy, str], ...] = (
    ("test-hardening", rf"{_MADE}(?:tests?|coverage)\b|test\b|cover\b"),
    ("documentation", rf"{_MADE}(?:docs?|documentation|readme|docstrings?|changelog)\b|document\b|describe\b"),
    ("bug-fix", rf"(?:fix|repair|debugg?|resolv|correct|solv){_FORMS}"),
    (
        "refactor",
        rf"(?:refactor|restructur|simplif|extract|renam|deduplicat|reorgani[sz]|splitt?|inlin){_FORMS}|clean[ -]?up\b",
    ),
    (
        "migration",
        rf"(?:migrat|upgrad|convert|bump){_FORMS}|port(?:ing)?\b|(?:move|switch)\b.* to\b|replace\b.* (?:by|with)\b",
    ),
    ("review", rf"(?:review|audit|inspect){_FORMS}"),
)
_POLITE = r"(?:please|kindly|can you|could you|we (?:need|want|should) to|i (?:need|want) (?:you )?to|let'?s)\b[\s,:]*"


@dataclass(frozen=True)
class Strategy:
    name: PromptStrategy
    source: Literal["request", "task_type", "words"]
    reason: str


def choose_strategy(spec: RunSpec) -> Strategy:
    if spec.prompt_strategy != "auto":
        return Strategy(spec.prompt_strategy, "request", "It was asked for.")
    if spec.type == _GENERIC and (found := _by_words(spec.task)):
        return found
    return Strategy(_BY_TYPE[spec.type], "task_type", f"The task is of type {spec.type}.")


def _by_words(task: str) -> Strategy | None:
    words = re.sub(rf"^\W*(?:{_POLITE})*", "", task, flags=re.IGNORECASE)
    for name, pattern in _BEGINNINGS:
        if match := re.match(rf"(?:{pattern})", words, re.IGNORECASE):
            return Strategy(name, "words", f"The task begins with {match[0].lower()!r}.")
    return None
