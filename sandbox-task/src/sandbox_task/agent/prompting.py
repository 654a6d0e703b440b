"""The words that the model gets, put together from the files in prompts/."""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from sandpiper.models.spec import READ_ONLY_TASKS, RunSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox_task.agent.strategy import Strategy
    from sandbox_task.isolation.wall import Wall
    from sandpiper.models.run import CheckResult

_PROMPTS = Path(__file__).parent / "prompts"
_NETWORK = {
    "bwrap": "There is no network: nothing can be downloaded or installed. Work with what is here.",
    "uid": "Do not use the network: work with what is here.",
}


def system_prompt(spec: RunSpec, wall: Wall) -> str:
    note = "This task is read-only: there are no tools to write files.\n" if spec.type in READ_ONLY_TASKS else ""
    ours = _fill(
        "system.md",
        tools_note=note,
        backend=wall.backend,
        workspace=wall.workspace,
        network=_NETWORK.get(wall.backend, ""),
    )
    return "\n\n".join(filter(None, (ours, spec.system_prompt, spec.append_system_prompt)))


def task_prompt(spec: RunSpec, strategy: Strategy, *, instructions: str, repository: str) -> str:
    return _fill(
        "task.md",
        task=spec.task,
        context=f"\n# Context given with the task\n{spec.context}\n" if spec.context else "",
        instructions=f"\n# The repository's own instructions\n{instructions}\n" if instructions else "",
        guidance=(_PROMPTS / f"{strategy.name}.md").read_text(encoding="utf-8").strip(),
        repository=repository.replace("</repository>", "(end of repository)"),
    )


def repair_prompt(failed: Sequence[CheckResult]) -> str:
    failures = "\n\n".join(f"`{check.command}` (exit code {check.exit_code}):\n{check.output_tail}" for check in failed)
    return _fill("repair.md", failures=failures)


def _fill(name: str, **values: str) -> str:
    return Template((_PROMPTS / name).read_text(encoding="utf-8")).substitute(values)
