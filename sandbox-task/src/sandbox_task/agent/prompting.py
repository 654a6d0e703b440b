"""The words that the model gets, put together from the files in prompts/."""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from sandbox_task.agent.context.marking import as_data
from sandbox_task.gate.repair import failures
from sandpiper.models.spec import READ_ONLY_TASKS, RunSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sandbox_task.agent.strategy import Strategy
    from sandbox_task.isolation.wall import Wall
    from sandpiper.models.run import CheckResult

_PROMPTS = Path(__file__).parent / "prompts"


def system_prompt(spec: RunSpec, wall: Wall) -> str:
    note = "This task is read-only: there are no tools to write files.\n" if spec.type in READ_ONLY_TASKS else ""
    ours = _fill(
        "system.md",
        tools_note=note,
        backend=wall.backend,
        workspace=wall.workspace,
    )
    return "\n\n".join(filter(None, (ours, spec.system_prompt, spec.append_system_prompt)))


def task_prompt(
    spec: RunSpec,
    strategy: Strategy,
    *,
    repository: str,
    instructions: str = "",
    story: str = "",
    baseline: Sequence[CheckResult] = (),
) -> str:
    return _fill(
        "task.md",
        task=spec.task,
        context=_section("Context given with the task", None if spec.github else spec.context),
        instructions=_section("The repository's own instructions", instructions),
        kind=_read(f"types/{spec.type}.md"),
        guidance=_read(f"strategies/{strategy.name}.md"),
        repository="\n\n".join(filter(None, (repository, *_found(story, spec)))),
        baseline=_section("Checks that fail before your work", failures(baseline) if baseline else None),
    )


def repair_prompt(failed: Sequence[CheckResult]) -> str:
    return _fill("repair.md", failures=failures(failed))


def ci_prompt(logs: str) -> str:
    return _fill("ci.md", logs=as_data(logs))


def resumed_prompt(reason: str, *, is_whole: bool) -> str:
    """`is_whole`: also what git ignores is as it was."""
    return _fill("resumed_whole.md" if is_whole else "resumed.md", reason=reason)


def _found(story: str, spec: RunSpec) -> Iterator[str]:
    """A conversation on GitHub is written by anybody: it stands where all data stands."""
    if story:
        yield f"The task seems to be about the story {story}"
    if spec.github and spec.context:
        yield f"The conversation on GitHub, {spec.github.repository}#{spec.github.number}:\n{as_data(spec.context)}"


def _section(title: str, text: str | None) -> str:
    return f"\n# {title}\n{text}\n" if text else ""


def _fill(name: str, **values: str) -> str:
    return Template(_read(name)).substitute(values)


def _read(name: str) -> str:
    return (_PROMPTS / name).read_text(encoding="utf-8").strip()
