"""Tools by which the agent says what it means to do and when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from sandbox_task.agent.tools.outcome import Arguments, Outcome
from sandpiper.models.run import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandbox_task.agent.ports import Sink


class PlanArguments(Arguments):
    summary: str = Field(description="The approach in one or two sentences.")
    steps: list[str] = Field(default=[], description="What you will do, in order.")
    files: list[str] = Field(default=[], description="Paths you expect to read or change.")
    risks: list[str] = Field(default=[], description="What could go wrong.")
    validation_commands: list[str] = Field(
        default=[], description="Shell commands that exit 0 if and only if the work is right (tests, linters)."
    )


class Finish(Arguments):
    status: Literal["done", "blocked"] = Field(description="blocked: you can't do the task, and the summary says why.")
    summary: str = Field(description="What you did and how you know that it works, for the person who asked.")


class UpdatePlan:
    name: ClassVar = "update_plan"
    description: ClassVar = "State your plan before you work, and again whenever it changes."
    writes: ClassVar = False
    arguments = PlanArguments

    def __init__(self, sink: Sink) -> None:
        self.plan: Plan | None = None
        self._sink = sink

    def shown(self, _arguments: PlanArguments) -> Mapping[str, Any]:
        return {}

    def run(self, arguments: PlanArguments, _call_id: str) -> Outcome:
        is_first = self.plan is None
        self.plan = Plan.model_validate(arguments.model_dump())
        self._sink.emit("planning_completed" if is_first else "plan_updated", plan=self.plan.model_dump(mode="json"))
        return Outcome("The plan is noted.")


class FinishTool:
    name: ClassVar = "finish"
    description: ClassVar = "End your work. Checks run afterwards; if one fails because of it, you are asked to repair."
    writes: ClassVar = False
    arguments = Finish

    def shown(self, arguments: Finish) -> Mapping[str, Any]:
        return {"status": arguments.status}

    def run(self, _arguments: Finish, _call_id: str) -> Outcome:
        return Outcome("Your work is being checked.")
