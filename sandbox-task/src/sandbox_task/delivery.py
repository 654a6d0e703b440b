"""From a proven tree to a branch: names, commit message, push."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandpiper.models.run import GateReport
    from sandpiper.models.spec import RunSpec, TaskType

_SUBJECTS: dict[TaskType, str] = {
    "feature-implementation": "feat",
    "bug-fix": "fix",
    "refactoring": "refactor",
    "documentation": "docs",
    "testing": "test",
    "migration": "chore",
    "code-review": "chore",
    "test-suite": "chore",
}
_SUBJECT_CHARS = 72
_SLUG_CHARS = 40
_CONVENTIONAL = re.compile(r"(feat|fix|refactor|docs|test|chore|perf|build|ci|style)(\([^)]*\))?!?: ", re.IGNORECASE)


def branch_name(spec: RunSpec, run_id: str) -> str:
    if spec.branch:
        return spec.branch
    slug = re.sub(r"[^a-z0-9]+", "-", spec.task.lower())[:_SLUG_CHARS].strip("-") or "task"
    return f"sandpiper/{spec.type}-{slug}-{run_id[-6:]}"


def commit_message(spec: RunSpec, run_id: str, summary: str, gate: GateReport) -> str:
    subject, body = _subject_and_body(spec, summary)
    trailers = (
        f"Sandpiper-Run: {run_id}\nSandpiper-Gate: {gate.status}{'' if gate.status == 'passed' else ' (unverified)'}"
    )
    return "\n\n".join(part for part in (subject, body, trailers) if part) + "\n"


def commit_url(spec: RunSpec, sha: str, github_url: str) -> str | None:
    """Where the commit can be looked at, if the repository is on the GitHub that we know."""
    if not spec.repo_url or not spec.repo_url.startswith(f"{github_url.rstrip('/')}/"):
        return None
    return f"{spec.repo_url.removesuffix('/').removesuffix('.git')}/commit/{sha}"


def _subject_and_body(spec: RunSpec, summary: str) -> tuple[str, str]:
    if spec.commit_message:
        subject, _, body = spec.commit_message.strip().partition("\n")
        return subject, body.strip()
    first = next((line.strip() for line in spec.task.splitlines() if line.strip()), "work")
    prefix = "" if _CONVENTIONAL.match(first) else f"{_SUBJECTS[spec.type]}: "
    return _shortened(f"{prefix}{first.lstrip('# ').rstrip('.')}"), summary.strip()


def _shortened(subject: str) -> str:
    if len(subject) <= _SUBJECT_CHARS:
        return subject
    return f"{subject[: _SUBJECT_CHARS - 1].rsplit(' ', 1)[0]}…"
