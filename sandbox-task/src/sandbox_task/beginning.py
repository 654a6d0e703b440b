"""What the agent is told at the start of a run: the task, and what it should know of the repository."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox_task.agent import prompting
from sandbox_task.agent.context.collect import collect
from sandbox_task.agent.context.marking import as_data
from sandbox_task.agent.strategy import choose_strategy
from sandbox_task.stories import recording

if TYPE_CHECKING:
    from sandbox_task.agent.context.collect import Context
    from sandbox_task.agent.ports import Sink
    from sandbox_task.agent.strategy import Strategy
    from sandbox_task.gate.gate import Gate
    from sandbox_task.options import Options
    from sandbox_task.workspace.repository import Repository
    from sandpiper.models.spec import RunSpec


@dataclass(frozen=True)
class Beginning:
    words: str
    context: Context
    strategy: Strategy

    def tell(self, sink: Sink) -> None:
        chosen = self.strategy
        sink.emit("repo_context_collected", **self.context.told())
        sink.emit("prompt_strategy_selected", strategy=chosen.name, source=chosen.source, reason=chosen.reason)


def first_words(spec: RunSpec, repository: Repository, settings: Options, gate: Gate, *, more: str = "") -> Beginning:
    """`more` is said of the repository besides, as data."""
    found, strategy = collect(repository, spec.task), choose_strategy(spec)
    words = prompting.task_prompt(
        spec,
        strategy,
        repository=f"{found.text}{more}",
        instructions=settings.instructions,
        story=_story(spec, repository),
        baseline=gate.broken_before(),
    )
    return Beginning(words, found, strategy)


def _story(spec: RunSpec, repository: Repository) -> str:
    """The story that the task names, as far as its words tell before there is a plan."""
    choice = recording.choose(repository, spec.task).choice
    return as_data(recording.described(choice)) if choice and choice.score else ""
