"""From a proven tree to a branch: names, commit message, push."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from sandpiper.logic.github.markdown import plain

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
_TRAILER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*: \S|\s+\S")
_OURS = re.compile(r"^Sandpiper-(Run|Gate)[ \t]*:.*\n", re.MULTILINE | re.IGNORECASE)  # as git reads trailers
_CONVENTIONAL = re.compile(r"(feat|fix|refactor|docs|test|chore|perf|build|ci|style)(\([^)]*\))?!?: ", re.IGNORECASE)


def branch_name(spec: RunSpec, run_id: str) -> str:
    if spec.github and spec.github.pull:
        return spec.github.pull.head_ref
    if spec.branch:
        return spec.branch
    plain = unicodedata.normalize("NFKD", spec.task).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_SLUG_CHARS].strip("-") or "task"
    return f"sandpiper/{spec.type}-{slug}-{run_id[-6:]}"


def commit_message(spec: RunSpec, run_id: str, summary: str, gate: GateReport) -> str:
    """A message that was asked for is kept as it is written; our trailers go to the ones that it may have. The model's
    words ping nobody, close nothing and have no trailers."""
    verified = "" if gate.status == "passed" else " (unverified)"
    trailers = f"Sandpiper-Run: {run_id}\nSandpiper-Gate: {gate.status}{verified}"
    message = spec.commit_message or "\n\n".join(filter(None, (_subject(spec), plain(summary).strip())))
    message = _OURS.sub("", f"{message.replace('\0', '').rstrip()}\n").strip("\n") or _subject(spec)
    is_added_to = spec.commit_message and _ends_with_trailers(message)
    return f"{message}{'\n' if is_added_to else '\n\n'}{trailers}\n"


def commit_url(spec: RunSpec, sha: str, github_url: str) -> str | None:
    """Where the commit can be looked at, if the repository is on the GitHub that we know."""
    if not spec.repo_url or not spec.repo_url.startswith(f"{github_url.rstrip('/')}/"):
        return None
    return f"{spec.repo_url.removesuffix('/').removesuffix('.git')}/commit/{sha}"


def _ends_with_trailers(message: str) -> bool:
    """As git has it: a last paragraph of `Token: value` lines, which is not the subject."""
    _, separator, last = message.rpartition("\n\n")
    return bool(separator) and all(_TRAILER.match(line) for line in last.splitlines())


def _subject(spec: RunSpec) -> str:
    """On GitHub the task may be the words of whoever wrote the issue."""
    task = plain(spec.task) if spec.github else spec.task.replace("\0", "")
    lines = (line.strip().lstrip("#").strip().rstrip(".") for line in task.splitlines())
    first = next(filter(None, lines), "work")
    prefix = "" if _CONVENTIONAL.match(first) else f"{_SUBJECTS[spec.type]}: "
    return _shortened(f"{prefix}{first}")


def _shortened(subject: str) -> str:
    """At a word, unless that would leave nearly nothing."""
    if len(subject) <= _SUBJECT_CHARS:
        return subject
    cut = subject[: _SUBJECT_CHARS - 1]
    at_a_word = cut.rsplit(" ", 1)[0]
    return f"{at_a_word if len(at_a_word) > _SUBJECT_CHARS // 2 else cut}…"
