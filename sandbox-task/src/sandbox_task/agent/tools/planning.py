"""Tools by which the agent says what it means to do, what it needs to know, and when it is done."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, field_validator

from sandbox_task.agent.tools.outcome import Arguments, Outcome, ToolError
from sandbox_task.suspension import Suspended
from sandpiper import limits
from sandpiper.models.run import Finding, Plan, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sandbox_task.agent.ports import Sink
    from sandbox_task.inbox import Inbox


class PlanArguments(Arguments):
    summary: str = Field(description="The approach in one or two sentences.")
    steps: list[str] = Field(default=[], description="What you will do, in order.")
    files: list[str] = Field(default=[], description="Paths you expect to read or change.")
    risks: list[str] = Field(default=[], description="What could go wrong.")
    validation_commands: list[str] = Field(
        default=[], description="Shell commands that exit 0 if and only if the work is right (tests, linters)."
    )


class Question(Arguments):
    question: str = Field(min_length=1, max_length=limits.MAX_QUESTION_CHARS)


class Finish(Arguments):
    status: Literal["done", "blocked"] = Field(description="blocked: you can't do the task, and the summary says why.")
    summary: str = Field(description="What you did and how you know that it works, for the person who asked.")

    def told(self) -> dict[str, Any]:
        """What the event says of it."""
        return {"status": self.status, "summary": self.summary}

    @property
    def reported(self) -> tuple[Finding, ...]:
        return ()


class FindingArguments(Arguments):
    file: str = Field(min_length=1, description="Path in the repository.")
    line: int | None = Field(default=None, ge=1)
    severity: Severity
    message: str = Field(min_length=1, description="What is wrong and why it matters.")
    suggestion: str | None = Field(default=None, description="The code or change you suggest.")

    @field_validator("file")
    @classmethod
    def _plain(cls, value: str) -> str:
        """As git names it; `search` says `./src/a.py`."""
        return posixpath.normpath(value)


class FinishReview(Finish):
    findings: list[FindingArguments] = Field(
        default=[], max_length=limits.MAX_FINDINGS, description="Each problem, the most serious first. Empty: none."
    )

    def told(self) -> dict[str, Any]:
        return {**super().told(), "findings": len(self.findings)}

    @property
    def reported(self) -> tuple[Finding, ...]:
        return tuple(Finding.model_validate(finding.model_dump()) for finding in self.findings)


class UpdatePlan:
    name: ClassVar = "update_plan"
    description: ClassVar = "State your plan before you work, and again whenever it changes."
    writes: ClassVar = False
    parallel: ClassVar = False
    arguments = PlanArguments

    def __init__(self, sink: Sink, plan: Plan | None = None) -> None:
        self.plan = plan
        self._sink = sink

    def shown(self, _arguments: PlanArguments) -> Mapping[str, Any]:
        return {}

    def run(self, arguments: PlanArguments, _call_id: str) -> Outcome:
        is_first = self.plan is None
        self.plan = Plan.model_validate(arguments.model_dump())
        self._sink.emit("planning_completed" if is_first else "plan_updated", plan=self.plan.model_dump(mode="json"))
        return Outcome("The plan is noted.")


class AskUser:
    name: ClassVar = "ask_user"
    description: ClassVar = "Ask the person a question that only they can decide. The work stops until they answer."
    writes: ClassVar = False
    parallel: ClassVar = False
    arguments = Question

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def shown(self, arguments: Question) -> Mapping[str, Any]:
        return {"question": arguments.question}

    def run(self, arguments: Question, _call_id: str) -> Outcome:
        """Raises Suspended if there is no answer yet; the call is made again when the run goes on."""
        answers = self._inbox.take()
        if not answers:
            message = f"The agent asks: {arguments.question}"
            raise Suspended("awaiting_input", message, question=arguments.question)
        return Outcome("\n".join(answers))


class FinishTool:
    name: ClassVar = "finish"
    description: ClassVar = "End your work. Checks run afterwards; if one fails because of it, you are asked to repair."
    writes: ClassVar = False
    parallel: ClassVar = False
    arguments = Finish

    def shown(self, arguments: Finish) -> Mapping[str, Any]:
        return {"status": arguments.status}

    def run(self, _arguments: Finish, _call_id: str) -> Outcome:
        return Outcome("Your work is being checked.")


class FinishReviewTool:
    """Of a review: what was found is data, and every remark is about a file that is there."""

    name: ClassVar = "finish"
    description: ClassVar = "End your review with what you found."
    writes: ClassVar = False
    parallel: ClassVar = False
    arguments = FinishReview

    def __init__(self, sink: Sink, exists: Callable[[str], bool]) -> None:
        self._sink, self._exists = sink, exists

    def shown(self, arguments: FinishReview) -> Mapping[str, Any]:
        return {"status": arguments.status, "findings": len(arguments.findings)}

    def run(self, arguments: FinishReview, _call_id: str) -> Outcome:
        if missing := sorted({found.file for found in arguments.findings if not self._exists(found.file)}):
            reason = f"Findings must name files of the repository; there is no {', '.join(missing)}."
            self._sink.emit("agent_finish_rejected", reason=reason, files=missing)
            raise ToolError(reason)
        return Outcome("Your review is being stored.")
